# frozen_string_literal: true

module Highball
  # Folders that only this user may enter: their owner decides what is found there.
  module PrivateFolder
    # Whether there is such a folder at this path.
    def self.at?(path)
      found = File.lstat(path)
      found.directory? && found.owned? && found.mode.nobits?(0o077)
    rescue SystemCallError
      false
    end
  end
end
