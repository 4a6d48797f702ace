# frozen_string_literal: true

require_relative "../spelling"
require_relative "arguments"

module Highball
  module DevelopmentServer
    # What the user has asked for: on the command line, in the environment, and in the configuration file. The first of
    # these that gives an option counts. Most options are about what only Highball itself does.
    class Options
      # An option's values and where they are from: `--port`, `PORT`, or a file. `folder`: where its paths
      # begin. `weak`: Puma's configuration overrides it.
      Given = Struct.new(:name, :texts, :origin, :folder, :in_file, :weak, keyword_init: true) do
        def value = texts.last
        def path = File.expand_path(value, folder)
      end

      # Where the file may be in an application.
      PLACES = %w[config/highball.toml highball.toml].freeze
      # What Puma reads where no file is named.
      PUMA_FILES = %w[config/puma.rb config/puma].freeze
      HOST = "127.0.0.1"
      PORT = "3000"
      PRODUCTION = "production"
      # Addresses that Puma can listen on: a Unix socket; a host, with or without a port.
      SOCKET = /\Aunix:(?<path>.+)\z/
      TCP = %r{\A(?<host>\[[\h:.]+\]|[^:\[\]/]+)(?::(?<port>\d+))?\z}
      # What other machines cannot connect to.
      LOOPBACK = /\A(?:unix:|localhost\b|127\.|\[?::1\b)/
      # A number of threads, or a range.
      THREADS = /\A(?:(?<least>\d+)(?:\.\.|:))?(?<most>\d+)\z/
      # Options that have an effect here, as far as their values are such.
      EFFECTIVE = { "access_log" => /\A(?:-|none)\z/, "bind" => Regexp.union(SOCKET, TCP), "config" => //,
                    "early_hints" => /\A(?:on|off)\z/, "environment" => //, "pidfile" => //, "port" => //,
                    "puma_config" => //, "threads" => Regexp.union("auto", THREADS),
                    "workers" => /\A(?:0|1|auto)\z/ }.freeze

      attr_reader :folder

      # arguments:: {"port" => ["4000"]}, from the command line
      # folder:: the application's
      # from:: where paths on the command line and in variables begin
      def initialize(arguments = {}, folder: Dir.pwd, from: folder, variables: ENV)
        @folder = folder
        @from = from
        @given = {}
        arguments.each { |name, values| give(name, values, LONG.key(name)) }
        OPTIONS.each { |name, option| take_variables(name, option, variables) }
        take_file
        refuse_open_address
      end

      def environment = value("environment") || "development"
      def production? = environment == PRODUCTION

      # The smaller and the larger number of threads; nil: what Puma chooses.
      def threads
        found = THREADS.match(value("threads").to_s) or return
        [found[:least] || found[:most], found[:most]].map(&:to_i)
      end

      # Host and port of the first TCP address, unless Puma's configuration names another one.
      def address
        found = @given["bind"]&.texts.to_a.filter_map { |text| TCP.match(text) unless SOCKET.match?(text) }.first
        [found ? found[:host] : HOST, (found && found[:port]) || port]
      end

      # The options for Puma's handler. Puma's configuration overrides them, except for the `user_supplied_options`.
      def for_puma
        chosen = { environment: environment, workers: 0, raise_exception_on_sigterm: false, **addresses, **details }
        host, port = address
        { **chosen, Host: host, Port: port, user_supplied_options: chosen.keys }
      end

      # A line that names what only Linux has; nil if there is nothing of this kind.
      def left_out
        left_out = @given.values.reject { |given| effective?(given) }
        return if left_out.empty?

        in_file, others = left_out.partition(&:in_file)
        found = others.map(&:origin)
        found << "#{in_file.map(&:name).join(', ')} in #{in_file.first.origin}" unless in_file.empty?
        "only Linux has: #{found.join(', ')}"
      end

      private

      # No other machine may connect without the password that only Linux asks for.
      def refuse_open_address
        password = @given["basic_auth"] or return
        open = [address.first, *@given["bind"]&.texts].find { |text| !LOOPBACK.match?(text) } or return
        raise Invalid, "only Linux has basic_auth (#{password.origin}), and #{open} would be open without a " \
                       "password. Listen on #{HOST} here"
      end

      def value(name) = @given[name]&.value
      def port = value("port") || PORT

      def effective?(given)
        pattern = EFFECTIVE[given.name]
        !pattern.nil? && given.texts.all? { |text| pattern.match?(text) }
      end

      def give(name, values, origin, **more)
        @given[name] ||= Given.new(name: name, texts: values, origin: origin, folder: @from, **more)
      end

      # Blank variables count as unset.
      def take_variables(name, option, variables)
        own = "HIGHBALL_#{name.upcase}"
        [own, *option[:variables]].each do |variable|
          text = variables[variable].to_s.strip
          next if text.empty?

          give(name, option[:list] ? text.split(/\s*,\s*/) : [text], variable, weak: variable != own)
        end
      end

      # The configuration file: the named one, or the file of the application. Nothing else is read where one is named.
      def file
        named = @given["config"]
        return (named.path unless puma_file?) if named

        PLACES.map { |name| File.join(@folder, name) }.find { |path| File.file?(path) }
      end

      def puma_file? = value("config").to_s.end_with?(".rb")

      def take_file
        path = file or return
        name = path.delete_prefix("#{@folder}/")
        parse(path, name).each do |key, value|
          OPTIONS.key?(key) || key == "app" or raise Invalid, unknown(name, key)
          give(key, texts(value), name, folder: @folder, in_file: true)
        end
      end

      def parse(path, name)
        require "tomlrb"
        Tomlrb.load_file(path)
      rescue LoadError
        raise Invalid, "the gem tomlrb, which reads #{name}, is not among the gems. Run: bundle add tomlrb"
      rescue SystemCallError => e
        raise Invalid, "cannot read #{name}: #{e.message}"
      rescue Tomlrb::ParseError => e
        raise Invalid, "#{name} is not TOML: #{e.message.strip}"
      end

      def unknown(file, key)
        meant = Spelling.near(key, OPTIONS.keys)
        "#{file}: there is no option #{key}#{"; did you mean #{meant}?" if meant}"
      end

      # A value of the file as texts, as variables have them. Tables are of options without an effect.
      def texts(value)
        list = value.is_a?(Hash) ? [value] : Array(value)
        list.map { |one| { true => "on", false => "off" }.fetch(one) { one.to_s } }
      end

      # Addresses that override those of Puma's configuration.
      def addresses
        bind, port = @given.values_at("bind", "port")
        return {} if [bind, port].compact.all?(&:weak)

        found = (bind ? bind.texts : [HOST]).filter_map { |text| puma_address(text) }
        found.empty? ? {} : { binds: found }
      end

      def puma_address(text)
        socket = SOCKET.match(text)
        return "unix://#{File.expand_path(socket[:path], @given['bind'].folder)}" if socket

        found = TCP.match(text)
        "tcp://#{found[:host]}:#{found[:port] || port}" if found
      end

      def details
        { Threads: threads_beside_puma&.join(":"), early_hints: { "on" => true, "off" => false }[value("early_hints")],
          pidfile: @given["pidfile"]&.path, config_files: puma_files,
          log_requests: { "-" => true, "none" => false }[value("access_log")] }.compact
      end

      # A variable such as RAILS_MAX_THREADS is for Puma's configuration, which usually reads it.
      def threads_beside_puma
        is_weak = @given["threads"]&.weak
        threads unless is_weak && PUMA_FILES.any? { |name| File.exist?(File.join(@folder, name)) }
      end

      def puma_files
        return [@given["config"].path] if puma_file?

        ["-"] if value("puma_config") == "off" || @given.key?("config")
      end
    end
  end
end
