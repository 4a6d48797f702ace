# frozen_string_literal: true

module Highball
  # Ruby's just-in-time compiler, YJIT. With compiled code, a request of a Rails application takes a fifth to a third
  # less CPU time.
  #
  # From Ruby 3.3 on a running process can enable it, and does when the application has been loaded: what runs once
  # while it boots is not compiled. Before, it has to be there from the start of the interpreter, so a mold starts
  # Ruby again, with it. (`highball` could not pass the option at once: a Ruby without YJIT ends when it gets it.) The
  # option is one of the command line, so programs that the application starts do not inherit it.
  module Compiler
    # What `highball` has decided: `on`, or why it is off.
    DECISION = "HIGHBALL_JIT"
    # Set in a process that Highball has started with YJIT.
    STARTED = "started"
    # MiB of address space for code. Ruby 3.1 sets them aside at the start (`Native.free_unused_code` gives back what
    # is not used), and halves them: code that seldom runs has one half. The example shop uses 2.4 and 2 MiB.
    CODE_MIB = 64

    module_function

    # Starts Ruby again with YJIT, where it is to be used and cannot be enabled later. To be called first of all.
    #
    # script:: the file that Ruby runs.
    def start_with_it(script)
      return if ENV[DECISION] != "on" || !available? || enabled? || enabled_later?

      ENV[DECISION] = STARTED
      options = ["--yjit", "--yjit-exec-mem-size=#{CODE_MIB}"]
      exec(RbConfig.ruby, *options, script, *ARGV, close_others: false)
    end

    # Takes the decision out of the environment.
    def take_decision
      @decision = ENV.delete(DECISION)
    end

    # Enables it, where that was not possible at the start. To be called when the application is loaded.
    def enable
      return if @decision != "on" || !available? || enabled? || !enabled_later?
      return @decision = "the application has config.yjit = false" if declined_by_rails?

      RubyVM::YJIT.enable
    end

    # {name: "YJIT"} if it is on, and {off: why} if not; also {is_missing: true} if it is off as there is none.
    def description
      return { name: "YJIT" } if enabled?
      return { off: @decision } if @decision && !["on", STARTED].include?(@decision)
      return { off: "this Ruby has none", is_missing: true } unless available?

      { off: "the environment has it so (RUBYOPT, RUBY_YJIT_ENABLE)" }
    end

    # Gives back the memory for code that Ruby 3.1 has set aside and not used.
    def free_unused_code
      Native.free_unused_code if enabled? && RUBY_VERSION.start_with?("3.1.")
    end

    def available? = defined?(RubyVM::YJIT) ? true : false
    def enabled? = available? && RubyVM::YJIT.enabled?
    def enabled_later? = RubyVM::YJIT.respond_to?(:enable)

    # Rails 7.2 and later enable it themselves, unless the application has chosen otherwise.
    def declined_by_rails?
      rails = defined?(::Rails) && ::Rails.respond_to?(:application) && ::Rails.application
      config = rails.config if rails
      config.respond_to?(:yjit) && config.yjit == false
    end
  end
end
