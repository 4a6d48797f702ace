# frozen_string_literal: true

module Highball
  # Ruby's just-in-time compiler, YJIT. With compiled code, a request of a Rails application takes a fifth to a third
  # less CPU time.
  #
  # It begins when the application has been loaded, so that what runs once while it boots is not compiled. From Ruby 3.3
  # on, a running process can enable it. Before, it has to be there from the start of the interpreter. `highball` does
  # not know the interpreter, and a Ruby without YJIT ends when it gets the option; so it first starts Ruby without
  # RubyGems, which takes a few milliseconds, and that Ruby starts itself again, with YJIT where it has it. The options
  # are those of the command line, so programs that the application starts do not inherit them.
  #
  # Ruby 3.2 compiles from the start. What Ruby 3.1 does is in ruby31/compiler.rb.
  module Compiler
    # What `highball` has decided: `on`, or why it is off.
    DECISION = "HIGHBALL_COMPILER"
    # It is to be on, and this Ruby has no RubyGems yet: it has to start again in any case.
    AGAIN = "again"
    # Set in a process that Highball has started with YJIT.
    STARTED = "started"
    # MiB of address space for code, and with Rails. Ruby 3.1 writes to them at the start, which takes a millisecond for
    # each (`Native.free_unused_code` gives back what is not used), and halves them: code that seldom runs has one half.
    # The example shop, which has Rails, uses 2.4 and 2 MiB.
    CODE_MIB = 16
    CODE_MIB_WITH_RAILS = 32
    # Calls after which a method is compiled that is called while the application boots. With Ruby 3.1's 10, and with
    # 30, the example shop's boot takes 0.8 s longer, and with 200 it takes 0.3 s longer. Requests are as fast.
    CALLS_WITH_BOOT = 200
    # The same where only requests count: Ruby 3.3's default. Redmine's first 2,000 requests take 7 % less CPU time than
    # with 200, and later ones are as fast.
    CALLS = 30

    module_function

    # Starts Ruby again, with YJIT where it is to be used and cannot be enabled later. To be called first of all.
    #
    # script:: the file that Ruby runs.
    def start_again(script)
      decision = next_decision or return
      ENV[DECISION] = decision
      require "rbconfig"
      exec(RbConfig.ruby, *options(decision), script, *ARGV, close_others: false)
    end

    # What the Ruby that is to be started next finds; nil if this one goes on.
    def next_decision
      case ENV.fetch(DECISION, nil)
      when "on" then with_compiler if from_start?
      when AGAIN then from_start? ? with_compiler : "on"
      end
    end

    def with_compiler = STARTED

    # The options with which Ruby is started.
    def options(decision)
      return [] if decision == "on"

      ["--yjit", "--yjit-exec-mem-size=#{code_mib}", "--yjit-call-threshold=#{calls(decision)}"]
    end

    # In the application's folder.
    def code_mib = File.exist?("config/application.rb") ? CODE_MIB_WITH_RAILS : CODE_MIB

    def calls(_decision) = CALLS_WITH_BOOT

    # Whether it has to be there from the start of the interpreter, and is not.
    def from_start? = available? && !enabled? && !enabled_later?

    # Takes the decision out of the environment.
    def take_decision
      @decision = ENV.delete(DECISION)
    end

    # Enables it, where that was not done at the start. To be called when the application has been loaded.
    def enable
      return unless wanted?(@decision) && available? && !enabled?
      return @decision = "the application has config.yjit = false" if declined_by_rails?

      turn_on
    end

    def turn_on = (RubyVM::YJIT.enable if enabled_later?)

    # Whether this decision is for it, and it is not on from the start.
    def wanted?(decision) = decision == "on"

    # {name: "YJIT"} if it is on, and {off: why} if not; also {is_missing: true} if it is off as there is none.
    def description
      return { name: "YJIT" } if enabled?
      return { off: @decision } if @decision && @decision != STARTED && !wanted?(@decision)
      return { off: "this Ruby has none", is_missing: true } unless available?

      { off: "the environment sets it (RUBYOPT, RUBY_YJIT_ENABLE)" }
    end

    # Gives back memory that is set aside for code and has none.
    def free_unused_code; end

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

  if RUBY_VERSION.start_with?("3.1.")
    require_relative "ruby31/compiler"
    Compiler.singleton_class.prepend(Ruby31::Compiler)
  end
end
