# frozen_string_literal: true

module Highball
  # What lasts in a process from one request to the next, and may be meant for this process alone: numbers that are
  # counted on, lists that grow, and identifiers; in variables of classes and modules, in global variables, and in the
  # application's constants. Caches are none of that: they are hashes, or set once and the same in every process.
  #
  # No rule can tell for sure. What belongs to the application is judged more strictly than what belongs to libraries,
  # where such state is nearly always a cache. Values are never shown, because they may be secrets.
  class LastingState
    # A list: how many entries it has, and whether there are only numbers among them.
    List = Struct.new(:size_now, :numbers)
    # A number of a hash.
    Count = Struct.new(:number)
    # What was found: {name => value} of the application, and of libraries.
    Look = Struct.new(:application, :libraries)

    # A library's number that is set once and is smaller is a setting.
    LARGE = 1 << 16
    # The most entries of a list or hash that are looked at.
    MOST_ENTRIES = 256
    # How deep the application's objects are looked into.
    DEPTH = 3
    # A UUID, or 16 hexadecimal digits or more.
    IDENTIFIER = /\h{8}-\h{4}-\h{4}-\h{4}-\h{12}|(?<!\h)\h{16,}(?!\h)/
    # The longest text that is looked at for an identifier.
    LONGEST = 256
    # Libraries in the application's folder.
    VENDORED = %r{/(vendor|gems|node_modules)/}
    # What counts loaded gems, and Highball.
    NOT_THE_APPLICATIONS = /\A(Gem|Bundler|Highball)(::|\z)/
    # Numbers that change without being meant for anything.
    LAST_LINES = %i[$INPUT_LINE_NUMBER $NR].freeze
    # Ruby's own: this file is loaded before the application.
    RUBYS = [*global_variables, *LAST_LINES].freeze

    NAME = Module.instance_method(:name)
    VARIABLES = Kernel.instance_method(:instance_variables)
    VARIABLE = Kernel.instance_method(:instance_variable_get)
    CLASS_VARIABLES = Module.instance_method(:class_variables)
    CLASS_VARIABLE = Module.instance_method(:class_variable_get)
    CONSTANTS = Module.instance_method(:constants)
    CONSTANT = Module.instance_method(:const_get)
    CLASS = Kernel.instance_method(:class)
    private_constant :NAME, :VARIABLES, :VARIABLE, :CLASS_VARIABLES, :CLASS_VARIABLE, :CONSTANTS, :CONSTANT, :CLASS

    # Create it before the application can serve.
    #
    # folder:: the application's.
    def initialize(folder)
      @folder = File.join(folder, "")
      @before = look
      @known = []
    end

    # What has changed by now is set again in each process: by hooks that run after a fork.
    def note_hooks = @known = changes(look)

    # What changes from now on changes all the time, and not only when it is first used.
    def note_use = @in_use = look

    # The names of what requests have left.
    def changed = (changes(look) - @known).map { |name| name[/\A[^\[]+/] }.uniq

    private

    def changes(now)
      ours = now.application.select { |name, value| ours_changed?(name, value) }
      others = now.libraries.select { |name, value| librarys_changed?(name, value) }
      [*ours.keys, *others.keys].sort
    end

    def ours_changed?(name, value)
      before = @before.application[name]
      case value
      when List then before ? before.size_now != value.size_now : value.numbers || used?(:application, name, value)
      when Count then before ? before != value : used?(:application, name, value)
      else before != value
      end
    end

    def librarys_changed?(name, value)
      before = @before.libraries[name]
      case value
      when Integer then before ? before != value : value >= LARGE || used?(:libraries, name, value)
      when String then before != value
      else used?(:libraries, name, value)
      end
    end

    def used?(whose, name, value)
      noted = @in_use && @in_use[whose][name]
      !noted.nil? && noted != value
    end

    def look
      @pid = Process.pid
      found = Look.new({}, {})
      ObjectSpace.each_object(Module) { |owner| look_at(owner, found) }
      (global_variables - RUBYS).each { |name| note(found.application, name.to_s, global(name), DEPTH) }
      found
    end

    def look_at(owner, found)
      name = NAME.bind_call(owner)
      return if name.nil? || NOT_THE_APPLICATIONS.match?(name)

      ours = ours?(name)
      into, depth = ours ? [found.application, DEPTH] : [found.libraries, 0]
      each_variable(owner) { |variable, value| note(into, "#{name}.#{variable}", value, depth) }
      return unless ours || owner.equal?(Object)

      each_constant(owner) { |constant, value| note(found.application, "#{name}::#{constant}", value, DEPTH) }
    rescue StandardError
      nil # what cannot be looked at is not found
    end

    def each_variable(owner)
      VARIABLES.bind_call(owner).each { |name| yield name, VARIABLE.bind_call(owner, name) }
      CLASS_VARIABLES.bind_call(owner, false).each { |name| yield name, CLASS_VARIABLE.bind_call(owner, name) }
    end

    # The application's. Nothing is loaded that is loaded when it is first used.
    def each_constant(owner)
      CONSTANTS.bind_call(owner, false).each do |name|
        next if owner.autoload?(name, false) || (owner.equal?(Object) && !ours?(name.to_s))

        value = CONSTANT.bind_call(owner, name, false)
        yield name, value unless a?(Module, value)
      end
    end

    def ours?(name)
      file, = Object.const_source_location(name)
      return false if file.nil? || file.start_with?("(") # of code without a file

      File.expand_path(file).start_with?(@folder) && !VENDORED.match?(file)
    rescue NameError
      false # there is no constant of this name
    end

    def global(name) = eval(name.to_s) # rubocop:disable Security/Eval -- there is no other way

    # Notes a value that may be meant for this process. `depth`: how far to look into objects of the application.
    def note(into, name, value, depth)
      case value
      when Integer then into[name] = value unless value == @pid # that is how libraries notice a fork
      when String then into[name] = value.dup if identifier?(value)
      when Array then into[name] = List.new(value.length, numbers?(value)) unless value.frozen?
      when Thread::Queue, Thread::SizedQueue then into[name] = List.new(value.length, false)
      else note_of_application(into, name, value, depth) unless depth.zero?
      end
    end

    def note_of_application(into, name, value, depth)
      case value
      when Range then into[name] = value
      when Hash then note_counts(into, name, value)
      else note_object(into, name, value, depth)
      end
    end

    def identifier?(text)
      return false if text.length > LONGEST || !text.valid_encoding?

      IDENTIFIER.match?(text) || text.start_with?("/tmp/") || text.match?(/(?<!\d)#{@pid}(?!\d)/)
    end

    def numbers?(list) = !list.empty? && list.first(MOST_ENTRIES).all? { |entry| a?(Integer, entry) }

    def note_counts(into, name, hash)
      return if hash.length > MOST_ENTRIES || hash.frozen?

      hash.dup.each do |key, value|
        into["#{name}[#{key}]"] = Count.new(value) if a?(Integer, value) && (a?(String, key) || a?(Symbol, key))
      end
    end

    def note_object(into, name, value, depth)
      return unless a?(Object, value)

      of = NAME.bind_call(CLASS.bind_call(value))
      return if of.nil?
      return note(into, name, value.value, 1) if of.match?(/\AConcurrent::Atomic(Fixnum|Reference)\z/)
      return unless ours?(of)

      VARIABLES.bind_call(value).each do |variable|
        note(into, "#{name}.#{variable}", VARIABLE.bind_call(value, variable), depth - 1)
      end
    end

    # Also where the object answers no questions.
    def a?(kind, object) = kind === object # rubocop:disable Style/CaseEquality
  end
end
