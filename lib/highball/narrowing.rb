# frozen_string_literal: true

module Highball
  # Names of options and statements that Highball does not know and that may narrow something: ignored, they would leave
  # it open.
  module Narrowing
    WORDS = /bind|listen|host|port|address|socket|ssl|tls|cert|key|verify|cipher|user|group|auth|pass|token|allow|deny|
             restrict|trust|prox|limit|max|timeout|method|umask|mode/ix

    def self.may?(name) = name.to_s.match?(WORDS)
  end
end
