# frozen_string_literal: true

require "bundler"
require "json"
require "minitest/autorun"
require "stringio"
require "tmpdir"
require "highball/app_folder"
require "highball/boot_output"
require "highball/checkup"
require "highball/detection"
require "highball/diagnosis"

# An exception may say anything in any encoding, and its methods may do anything. Its diagnosis finds the same cause and
# place as without, and never raises: a boot that fails would look as if the application had ended itself.
class ForeignBytesTest < Minitest::Test
  # What is put into messages, backtraces and files.
  FOREIGN = {
    latin1_in_utf8: "caf\xE9", latin1: "caf\xE9".dup.force_encoding("ISO-8859-1"), binary: "caf\xE9\xFF\x00".b,
    ascii: "caf\xE9".dup.force_encoding("US-ASCII"), sjis: "\x93\xFA\x96".dup.force_encoding("Shift_JIS"),
    utf8: "café", controls: "\e]0;owned\a\u0000", utf7: "x".dup.force_encoding("UTF-7")
  }.freeze

  # The messages that a row with a pattern needs.
  SAMPLES = [
    "Could not find gem 'rails' in locally installed gems", "missing run or map statement", "already activated rack",
    "/x/gems/nokogiri-1.16.0/lib/nokogiri.so: undefined symbol: rb_gone", "cannot load such file -- /srv/setings",
    "uninitialized constant Bolg", "Cannot load database configuration",
    "invalid byte sequence in UTF-8", "Missing `secret_key_base` for 'staging'"
  ].freeze

  def test_every_cause_is_found_with_foreign_bytes_in_message_backtrace_and_files
    Highball::Causes::TABLE.each do |row|
      classes = row.classes.empty? ? ["RuntimeError"] : row.classes
      classes.product(FOREIGN.to_a).each do |name, (kind, foreign)|
        in_an_application(foreign) do |root|
          plain, strange = ["plain", foreign].map { |part| fields(failure(name, row, part, root), root) }
          about = "#{row.name} #{name} #{kind}"
          refute_equal :exception, plain[:cause], about
          assert_equal plain[:cause], strange[:cause], about
          place = ->(found) { found[:error].values_at(:class, :file, :line) }
          assert_equal place.call(plain), place.call(strange), about
          assert_equal plain[:remedy].nil?, strange[:remedy].nil?, about
        end
      end
    end
  end

  def test_a_source_of_other_bytes_is_a_syntax_error_at_its_line
    Dir.mktmpdir do |root|
      path = File.join(File.realpath(root), "app.rb")
      File.binwrite(path, "# frozen\nNAME = :caf\xE9\n")
      error = assert_raises(SyntaxError) { load path }
      fields = fields(error, File.dirname(path))
      assert_equal [:syntax_error, path, 2], [fields[:cause], *fields[:error].values_at(:file, :line)]
      assert_equal "ruby -c #{path}", fields[:command]
    end
  end

  def test_a_path_of_other_bytes_is_shown_with_its_line
    Dir.mktmpdir do |folder|
      root = File.join(File.realpath(folder), "caf\xE9")
      Dir.mkdir(root)
      File.binwrite(File.join(root, "gr\xFCn.rb"), "# encoding: iso-8859-1\nraise KeyError, 'no \xE9'\n")
      error = assert_raises(KeyError) { load File.join(root, "gr\xFCn.rb") }
      shown = fields(error, root)[:error]
      assert_equal ["#{folder}/caf\\xE9/gr\\xFCn.rb", 2, "no é"], shown.values_at(:file, :line, :message)
    end
  end

  def test_the_name_of_a_class_may_have_other_bytes
    eval "# encoding: iso-8859-1\nclass Caf\xE9Error < KeyError; end".b, TOPLEVEL_BINDING # rubocop:disable Security/Eval
    error = Object.const_get("Caf\xE9Error".dup.force_encoding("ISO-8859-1")).new("closed")
    assert_equal "CaféError", fields(error)[:error][:class]
  end

  # Files beside it, and what it prints.
  def test_an_application_is_detected_beside_files_of_other_bytes
    in_an_application("caf\xE9") do |root|
      File.write(File.join(root, "caf\xE9.rb"), "")
      File.binwrite(File.join(root, "config.ru"), "# caf\xE9\nrequire_relative 'app'\nrun Sinatra::Application\n")
      File.binwrite(File.join(root, "app.rb"), "# caf\xE9\nrequire 'sinatra'\n")
      found = Highball::Detection.of(Highball::AppFolder.new(root))
      assert_match(/\ASinatra/, found.name)
      assert_includes found.evidence.words, "require 'sinatra'"
    end
  end

  def test_what_an_application_prints_is_kept_in_any_encoding
    output = Highball::BootOutput.new
    FOREIGN.each_value { |foreign| output.add([foreign.b, foreign, "\n"]) }
    output.add(["\e" * 100_000])
    lines = output.to_a
    assert_predicate lines.join, :valid_encoding?
    assert_operator Highball::Message.encode(lines).bytesize, :<=, Highball::BootOutput::MESSAGE_BYTES
  end

  # The methods of an exception may be the application's own.
  HOSTILE = {
    message: [-> { raise "no" }, -> { message }, -> { exit 3 }, -> { throw :x }, -> {}, -> { 42 },
              -> { raise NoMemoryError }, -> { BasicObject.new }, -> { "x" * 100_000_000 }, -> { "a frozen \u{1F6D1}" },
              -> { "\xE9" * 20_000_000 }, -> { Class.new(String) { def to_s = raise("no") }.new("inner") },
              -> { "/" * 200_000 }],
    backtrace: [-> { raise "no" }, -> { "a string" }, -> { [nil, 1, BasicObject.new] }, -> { 42 },
                -> { ["\xE9:1"] * 200_000 }],
    cause: [-> { raise "no" }, -> { self }, -> { clone }, -> { "none" }, -> { RuntimeError.new("caf\xE9") }],
    class: [-> { raise "no" }, -> {}], is_a?: [->(_) { raise "no" }], respond_to?: [->(*) { raise "no" }],
    inspect: [-> { raise "no" }], to_s: [-> { raise "no" }], detailed_message: [->(**) { raise "no" }],
    path: [-> { raise "no" }, -> { "a\0b" }, -> { 42 }, -> { "x" * 1_000_000 }],
    corrections: [-> { raise "no" }, -> { [BasicObject.new] }, -> { "one" }], status: [-> { raise "no" }]
  }.freeze

  def test_no_exception_keeps_its_diagnosis_from_being_made
    HOSTILE.each do |name, bodies|
      bodies.each.with_index do |body, number|
        [LoadError, NameError, SystemExit, RuntimeError].each do |base|
          error = Class.new(base) { define_method(name, &body) }.new
          fields = fields(error)
          about = "#{name} #{number} #{base}"
          assert_operator Highball::Message.encode(fields).bytesize, :<=, Highball::Diagnosis::FIELDS_BYTES, about
          refute_equal :exit_called, fields[:cause], about unless base == SystemExit
        end
      end
    end
  end

  # Should a part of the diagnosis raise all the same.
  def test_a_diagnosis_that_fails_is_logged_and_the_message_shown_as_it_is
    failing = ->(*) { raise NoMemoryError, "failed to allocate memory" }
    fields = nil
    _, log = with(Highball::Causes, :of, failing) do
      capture_io { fields = Highball::Diagnosis.fields_of(ArgumentError.new("caf\xE9 \e[2J")) }
    end
    assert_equal({ error: { class: "ArgumentError", message: "caf\\xE9 \\e[2J" }, cause: :exception }, fields)
    assert_match(/ERROR Highball could not diagnose an exception.*NoMemoryError: failed to allocate/m, log)
  end

  def test_remedies_of_checks_name_lines_in_files_of_other_bytes
    in_an_application("caf\xE9") do |root|
      FileUtils.mkdir_p(File.join(root, "config"))
      File.binwrite(File.join(root, "config/database.yml"), "# caf\xE9\npool: 1\n")
      place = Highball::Checkup.new(root: root).send(:place, /pool/, "config/database.yml")
      assert_equal 2, place[:line]
    end
  end

  private

  def fields(error, root = "/srv/app")
    fields = nil
    _, log = capture_io { fields = Highball::Diagnosis.fields_of(error, root: root) }
    assert_empty log
    JSON.parse(Highball::Message.encode(fields))
    fields
  end

  # An exception of this class that has this in its message, and in its backtrace beside a line of the application.
  def failure(class_name, row, part, root)
    message = SAMPLES.find { |sample| row.pattern&.match?(sample) } || "it failed"
    message = join(message, part)
    lines = [join("/gems/", part, ".rb:1:in `x'"), "#{root}/app.rb:3:in `y'", join("#{root}/", part, "/z.rb:1:in `z'")]
    existing_class(class_name).allocate.tap do |error|
      error.define_singleton_method(:message) { message }
      error.set_backtrace(lines)
    end
  end

  # As bytes, in the encoding of the part.
  def join(*parts)
    encoding = parts.map(&:encoding).find { |one| one != Encoding::UTF_8 } || Encoding::UTF_8
    parts.map(&:b).join(" ").force_encoding(encoding)
  end

  # Most of them are not loaded.
  def existing_class(name)
    names = name.split("::")
    names.each_with_index.inject(Object) do |within, (part, index)|
      next within.const_get(part, false) if within.const_defined?(part, false)

      within.const_set(part, Class.new(index == names.length - 1 ? StandardError : Object))
    end
  end

  def in_an_application(foreign)
    Dir.mktmpdir do |root|
      root = File.realpath(root)
      %w[Gemfile Gemfile.lock].each { |name| File.binwrite(File.join(root, name), "# #{foreign.b}\ngem 'rails'\n") }
      File.binwrite(File.join(root, "caf\xE9.rb"), foreign.b)
      Dir.chdir(root) { yield root }
    end
  end

  def with(object, name, body)
    original = object.method(name)
    silence { object.define_singleton_method(name, &body) }
    yield
  ensure
    silence { object.define_singleton_method(name, original) }
  end

  # Ruby warns of methods that are defined again.
  def silence
    verbose = $VERBOSE
    $VERBOSE = nil
    yield
  ensure
    $VERBOSE = verbose
  end
end
