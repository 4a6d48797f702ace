# frozen_string_literal: true

module Highball
  # Ruby's just-in-time compiler, YJIT. With compiled code, a request of a Rails application takes a fifth to a third
  # less CPU time.
  #
  # From Ruby 3.3 on a running process can enable it, and does when the application has been loaded: what runs once
  # while it boots is not compiled. Before, it has to be there from the start of the interpreter. `highball` does not
  # know the interpreter, and a Ruby without YJIT ends when it gets the option; so it first starts Ruby without
  # RubyGems, which takes a few milliseconds, and that Ruby starts itself again, with YJIT where it has it. The options
  # are those of the command line, so programs that the application starts do not inherit them.
  module Compiler
    # What `highball` has decided: `on`, or why it is off.
    DECISION = "HIGHBALL_COMPILER"
    # It is to be on, and this Ruby has no RubyGems yet: it has to start again in any case.
    AGAIN = "again"
    # Set in a process that Highball has started with YJIT.
    STARTED = "started"
    # MiB of address space for code. Ruby 3.1 writes to them at the start, which takes a millisecond for each
    # (`Native.free_unused_code` gives back what is not used), and halves them: code that seldom runs has one half.
    # The example shop uses 2.4 and 2 MiB.
    CODE_MIB = 32
    # Calls after which a method is compiled. With Ruby 3.1's 10, and with 30, it compiles much that only the boot
    # calls: the example shop's boot took 0.8 s longer, and with 200 it takes 0.3 s longer. Requests are as fast.
    CALLS = 200

    module_function

    # Starts Ruby again, with YJIT where it is to be used and cannot be enabled later. To be called first of all.
    #
    # script:: the file that Ruby runs.
    def start_again(script)
      from_start = %w[on again].include?(ENV.fetch(DECISION, nil)) && available? && !enabled? && !enabled_later?
      return unless from_start || ENV[DECISION] == AGAIN

      ENV[DECISION] = from_start ? STARTED : "on"
      options = from_start ? ["--yjit", "--yjit-exec-mem-size=#{CODE_MIB}", "--yjit-call-threshold=#{CALLS}"] : []
      require "rbconfig"
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
