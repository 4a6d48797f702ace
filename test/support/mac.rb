# frozen_string_literal: true

require_relative "command_to_end"
require_relative "free_port"
require_relative "highball_server"
require "highball/version"

# Rubies that say that this is a Mac, with the gem for one, and with nothing to build with.
module Mac
  class Failed < StandardError; end

  PLATFORM = "arm64-darwin"
  TAKES_IT_FOR_ONE = File.expand_path("darwin", __dir__)
  BUILDERS = %w[cc gcc clang c++ g++ cargo rustc make].freeze
  # Debian's own Bundler, which knows that packages need no folder as gems have.
  BUNDLER = Gem::Specification.stubs_for("bundler").reject(&:default_gem?).map { |gem| gem.version.to_s }.first
  # The gems that Debian has to have for it.
  NEEDED = %w[puma tomlrb rack].freeze

  class << self
    # The folder with the gems of `rake gem:macs`.
    def folder
      @folder ||= Dir.mktmpdir("highball-macs").tap do |made|
        Minitest.after_run { FileUtils.rm_rf(made) }
        CommandToEnd.output("rake", "gem:macs", failed: Failed, env: { "HIGHBALL_GEM_FOLDER" => made },
                                                chdir: HighballServer::ROOT)
      end
    end

    def gem(platform = PLATFORM) = File.join(folder, "highball-#{Highball::VERSION}-#{platform}.gem")

    # The folder where the gem is installed.
    def home
      @home ||= File.join(folder, "home").tap do |made|
        CommandToEnd.output("gem", "install", "--local", "--no-document", "--bindir", "#{made}/bin", gem,
                            failed: Failed, env: environment(made))
      end
    end

    # Programs that would build something: each fails, and leaves a file.
    def builders
      @builders ||= File.join(folder, "builders").tap do |made|
        FileUtils.mkdir_p(made)
        BUILDERS.each do |name|
          File.write(File.join(made, name), "#!/bin/sh\necho $0 \"$@\" >>#{made}/used\nexit 1\n", perm: 0o755)
        end
      end
    end

    def used_builders = File.exist?("#{builders}/used") ? File.read("#{builders}/used") : ""

    # Variables of a Mac's shell, with gems in this folder.
    def environment(home)
      HighballServer::ENVIRONMENT.keys.grep(/\AHIGHBALL_/).to_h { |name| [name, nil] }.merge(
        "RUBYLIB" => TAKES_IT_FOR_ONE, "RUBYOPT" => "-r#{TAKES_IT_FOR_ONE}/rubygems/defaults/operating_system",
        "GEM_HOME" => home,
        "BUNDLER_VERSION" => BUNDLER, "BUNDLE_USER_CONFIG" => File::NULL,
        "BUNDLE_PATH" => nil, "PATH" => "#{builders}:#{home}/bin:#{ENV.fetch('PATH')}"
      )
    end
  end
end
