# frozen_string_literal: true

module Highball
  # Paths as they were given: a link on the way, such as Capistrano's `current`, may lead to another release later. This
  # is loaded before an application's gems are chosen, and needs none.
  module GivenPath
    module_function

    # The current folder by the path that the user came to it by: PWD, as shells set it, where that leads here.
    def folder
      given = ENV.fetch("PWD", "")
      is_plain = given.start_with?("/") && !given.split("/").include?("..")
      is_plain && File.identical?(given, ".") ? given : Dir.pwd
    end

    # `..` stays: behind a link it leads to the folder around the link's target.
    def absolute(path) = path.start_with?("/") ? path : File.join(folder, path)

    # This folder by the path of the current one, where it is that.
    def of(path) = File.identical?(path, ".") ? folder : path
  end
end
