# frozen_string_literal: true

require_relative "message"
require_relative "puma_statements"
require_relative "spelling"

module Highball
  # A Puma configuration, `config/puma.rb`, that an application has in the place of one for Highball: it is evaluated in
  # the application's own Ruby, and what it says is kept as settings, hooks and notes.
  #
  # It is read twice: before the server starts, for its settings (puma_config.rb), and where the application is loaded,
  # for its hooks (PumaHooks).
  class PumaFile
    # A statement that sets an option of Highball: its name, and the text of its value, as in highball.toml.
    Setting = Struct.new(:name, :value, :file, :line, keyword_init: true)
    # A block to run at a moment. `data` is the Hash that Puma hands to hooks with a key.
    Hook = Struct.new(:statement, :moment, :block, :data, :file, :line, keyword_init: true)
    # A statement that is not carried out, or not as it says. `narrows`: the option that is then wider than the file
    # says, so that there is no start unless another source gives that option; nil: none.
    Note = Struct.new(:statement, :what, :remedy, :file, :line, :narrows, keyword_init: true)
    # A file or folder that a statement names.
    Place = Struct.new(:path, :file, :line, keyword_init: true)

    # A statement for which there is nothing to do.
    Skip = Struct.new(:statement, :file, :line, keyword_init: true)

    class << self
      # The file that is being read, and what Puma's configuration is of the last one.
      attr_accessor :current, :config
    end

    attr_reader :settings, :hooks, :notes, :skipped, :directory, :options

    # folder:: the application's
    def initialize(folder = Dir.pwd)
      @folder = folder
      @settings = []
      @hooks = []
      @notes = []
      @skipped = []
      @binds = []
      @tls = []
      @clusters = []
      @options = {}
      @data = {}
      @files = []
      @waiting = []
    end

    # Evaluates the file, and the files that it loads. Raises whatever the file raises.
    def read(path)
      PumaFile.current = self
      @dsl = Dsl.new(self)
      carry_out(path)
      while (file = @waiting.shift)
        carry_out(file)
      end
      @clusters.each { |block| @dsl.instance_eval(&block) }
      settle_addresses
      settle_jobs
      @dsl.close
      self
    ensure
      PumaFile.current = nil
    end

    # Evaluates one of its files.
    def carry_out(path)
      path = File.expand_path(path, @folder)
      @files << path
      text = File.read(path)
      Surroundings.provide_libraries(text)
      EVALUATION.call(@dsl, text, path, 1)
    end

    # File and line of the statement that is being carried out, or that this exception comes from.
    def place(locations = caller_locations)
      found = locations&.find { |location| @files.include?(location.absolute_path || location.path) }
      found ||= locations&.find { |location| !location.path.to_s.start_with?(__dir__, "<internal:") }
      [found&.path || @files.last, found&.lineno]
    end

    # --- what statements come to

    def set(name, value)
      file, line = place
      @settings << Setting.new(name: name, value: value.to_s, file: file, line: line)
    end

    def note(statement, what, remedy, narrows: nil)
      file, line = place
      @notes << Note.new(statement: statement, what: what, remedy: remedy, file: file, line: line, narrows: narrows)
    end

    def skip(statement)
      file, line = place
      @skipped << Skip.new(statement: statement, file: file, line: line)
    end

    def hook(statement, moment, block, key = nil)
      raise ArgumentError, "#{statement} needs a block" unless block

      file, line = place
      data = key && (@data[key.to_sym] ||= {})
      @hooks << Hook.new(statement: statement, moment: moment, block: block, data: data, file: file, line: line)
    end

    def bind(address, by_port: nil)
      file, line = place
      @binds << [address, by_port, file, line]
    end

    # With the certificate that the address names, or in development with one for this machine.
    def bind_tls(statement, tls)
      @binds << (bind = ["tls://#{tls.address}", nil, *place])
      @tls << [statement, tls, bind]
    end

    # Where to listen unless statements give addresses.
    def use_host(host)
      file, line = place
      @host = [host.to_s, nil, file, line]
    end

    def forget_binds
      [@binds, @tls].each(&:clear)
      forgive_addresses
    end

    # Runs Solid Queue beside the workers. Which file starts it, a later statement may say.
    def run_jobs
      @jobs ||= place
      nil
    end

    def load_later(path) = @waiting << File.expand_path(path, @folder)
    def run_later(block) = @clusters << block

    def start_from(path)
      @rackup = [@rackup, named(path)].compact.first # the first one counts, as in Puma
    end

    # The last one counts.
    def live_in(path)
      @directory = named(path)
    end

    # Relative to where the application lives, which a later statement may say.
    def rackup
      @rackup&.then { |found| found.dup.tap { |one| one.path = File.expand_path(one.path, home) } }
    end

    def same_folder?(path)
      File.realpath(path, @folder) == File.realpath(@folder)
    rescue SystemCallError
      false
    end

    private

    def named(path)
      file, line = place
      Place.new(path: path, file: file, line: line)
    end

    def home = File.expand_path(@directory ? @directory.path : ".", @folder)

    # A port alone leaves the address to Highball. Beside others, or with a host, it is an address.
    def settle_addresses
      settle_certificates
      forgive_addresses unless @binds.empty?
      return add_setting("bind", @host[0], @host) if @host && @binds.empty? && @notes.none?(&:narrows)

      only = @binds.first if @binds.one?
      return add_setting("port", only[1], only) if only && only[0].nil?

      @binds.each { |bind| add_setting("bind", bind[0] || "#{usual_host}:#{bind[1]}", bind) }
    end

    # Each certificate once. Addresses without one get one for this machine in development, as by the gem localhost.
    def settle_certificates
      with, without = @tls.partition { |_, tls| tls.files }
      with.uniq { |_, tls| tls.files }.each do |_, tls, bind|
        %w[tls_certificate tls_key].zip(tls.files) { |name, file| add_setting(name, file, bind) }
      end
      issues = without.any? && with.empty? && development? && Gem.loaded_specs.key?("localhost")
      return add_setting("https", "on", without[0][2]) if issues

      without.each { |address| drop_tls(*address) }
    end

    def drop_tls(statement, tls, bind)
      @binds.delete_if { |other| other.equal?(bind) }
      what = "ssl://#{tls.address} is not bound: it names no `cert` and no `key`."
      @notes << Note.new(statement: statement, what: what, remedy: "#{TlsAddress::NO_FILES.capitalize}.",
                         file: bind[2], line: bind[3], narrows: "bind")
    end

    def settle_jobs
      return unless @jobs

      command = jobs_command or return note_missing_jobs
      env = @options[:solid_queue_mode].to_s == "async" ? { "SOLID_QUEUE_SUPERVISOR_MODE" => "async" } : {}
      add_setting("process", Message.encode(name: "jobs", command: command, env: env), [nil, nil, *@jobs])
    end

    # What starts Solid Queue, or nil.
    def jobs_command
      bin = File.join(home, "bin/jobs")
      if File.executable?(bin) then ["bin/jobs"]
      elsif File.file?(bin) then ["ruby", "bin/jobs"]
      elsif Gem.loaded_specs.key?("solid_queue") then %w[bundle exec rake solid_queue:start]
      end
    end

    def note_missing_jobs
      @notes << Note.new(statement: "plugin :#{PumaStatements::JOBS}", file: @jobs[0], line: @jobs[1],
                         what: "There is no bin/jobs, and no solid_queue in the bundle.",
                         remedy: "Add the gem solid_queue, and run `bin/rails solid_queue:install`.")
    end

    # There are other addresses beside the unusable ones.
    def forgive_addresses
      @notes.each { |note| note.narrows = nil if note.narrows == "bind" }
    end

    def add_setting(name, value, (_, _, file, line))
      @settings << Setting.new(name: name, value: value.to_s, file: file, line: line)
    end

    def usual_host = development? ? "127.0.0.1" : "0.0.0.0"

    def development?
      environment = ENV.values_at("RAILS_ENV", "RACK_ENV", "APP_ENV").compact.first || @options[:environment]
      ["development", nil].include?(environment)
    end
  end
end

# Outside of all modules: a name in such a file is the application's (`App`, `Log`), and none of Highball's.
Highball::PumaFile::EVALUATION = ->(highball_dsl, *highball_text) { highball_dsl.instance_eval(*highball_text) }

require_relative "puma_file/surroundings"
require_relative "puma_file/tls_address"
require_relative "puma_file/dsl"
