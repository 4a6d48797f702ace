# frozen_string_literal: true

# RubyGems loads this file when Ruby starts, in the place of the system's: from now on Ruby says that this is a Mac. The
# gems of this machine, with extensions for it, stay where they are.
# (`ruby -r` loads it where the load path begins with the system's files.)
return if RUBY_PLATFORM.include?("darwin")

own = File.expand_path(__dir__)
systems = $LOAD_PATH.map { |folder| File.join(folder, "rubygems/defaults/operating_system.rb") }
systems = systems.find { |file| File.file?(file) && File.dirname(File.expand_path(file)) != own }
load systems if systems && !Gem.respond_to?(:upstream_default_path)

paths = Gem.default_path
built_for = Gem::Platform.local.to_s
Gem.define_singleton_method(:default_path) { paths }
Gem.define_singleton_method(:default_ext_dir_for) do |folder|
  File.join(folder, "extensions", built_for, Gem.extension_api_version)
end
Gem::Platform.instance_variable_set(:@local, nil)
Gem.instance_variable_set(:@platforms, nil)

RbConfig::CONFIG.update("arch" => "arm64-darwin23", "host_os" => "darwin23", "host_cpu" => "arm64",
                        "target_os" => "darwin23", "target_cpu" => "arm64")
Object.send(:remove_const, :RUBY_PLATFORM)
RUBY_PLATFORM = "arm64-darwin23"
