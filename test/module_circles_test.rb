# frozen_string_literal: true

require "minitest/autorun"
require "set"

# In each folder of a crate, modules build on each other in one direction: no two of them import each other, neither
# directly nor through others. So each can be read, and tested, after those below it.
class ModuleCirclesTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  CRATES = Dir["{bench,bench/floor,crates/*,ext/*}/src", base: ROOT].map { |path| File.dirname(path) }.freeze

  CRATES.each do |crate|
    define_method("test_no_modules_of_#{crate}_import_each_other_in_a_circle") do
      @sources = File.join(ROOT, crate, "src")
      circles = imports.group_by(&:folder).flat_map { |folder, found| circles_in(folder, found) }
      assert_empty circles, "modules that import each other:\n#{circles.join("\n")}"
    end
  end

  def test_a_circle_through_a_third_module_is_found
    around = [%w[a b], %w[b c], %w[c a], %w[a d]].map { |from, to| Import.new([], from, to, "#{from}.rs") }
    found = circles_in([], around)
    assert_equal(%w[a b c], found.map { |circle| circle[/: (\w)/, 1] })
    assert_empty circles_in([], around.reject { |import| import.to == "a" })
  end

  private

  # A module of `folder` needs another one of it; `where`: the file, and what it imports.
  Import = Struct.new(:folder, :from, :to, :where)

  def imports
    modules.flat_map do |path, file|
      paths_in(file, path).filter_map { |imported| import(path, imported, file) }
    end
  end

  # The modules by path: `["dispatch", "worker"]` is dispatch/worker.rs.
  def modules
    @modules ||= Dir.glob("**/*.rs", base: @sources).reject { |file| of_tests?(file) }.to_h do |file|
      [file.delete_suffix(".rs").split("/") - %w[lib main mod], File.join(@sources, file)]
    end
  end

  def of_tests?(file) = file.match?(%r{(\A|/)(tests|test_\w+|\w+_tests)(/\w+)?\.rs\z})

  # Where two paths part, one module of the folder imports another. A module and those within it are one.
  def import(from, imported, file)
    known = (1..imported.length).map { |length| imported.first(length) } & modules.keys
    to = known.max_by(&:length)
    return unless to

    common = from.zip(to).take_while { |one, other| one == other && one }.length
    return if common == from.length || common == to.length

    Import.new(from.first(common), from[common], to[common],
               "#{file.delete_prefix("#{@sources}/")}: #{imported.join('::')}")
  end

  # All paths that a file names, from the root of the crate.
  def paths_in(file, path)
    source = File.read(file).sub(/^#\[cfg\(test\)\]\n(#\[.*\]\n)?mod tests \{.*\z/m, "").gsub(%r{//.*$}, "")
    of_uses = source.scan(/^\s*(?:pub(?:\([^)]*\))? )?use ([^;]+);/m).flat_map { |use,| expand(use.gsub(/\s+/, "")) }
    inline = source.scan(/\b((?:crate|super)(?:::\w+)+)/).flatten
    (of_uses + inline).filter_map { |named| absolute(named.split("::"), path) }.uniq
  end

  # `a::{b, c::d}` becomes `a::b` and `a::c::d`.
  def expand(use)
    return [use] unless use.include?("{")

    prefix, rest = use.split("{", 2)
    parts(rest.delete_suffix("}")).flat_map { |part| expand(part).map { |path| prefix + path } }
  end

  def parts(list)
    depth = 0
    list.each_char.with_object([+""]) do |letter, parts|
      depth += { "{" => 1, "}" => -1 }.fetch(letter, 0)
      letter == "," && depth.zero? ? parts << +"" : parts.last << letter
    end
  end

  def absolute(named, path)
    case named.first
    when "crate" then named.drop(1)
    when "super"
      up = named.take_while { |name| name == "super" }.length
      path.first(path.length - up) + named.drop(up)
    end
  end

  # The circles among the modules of a folder, each with the imports that close it.
  def circles_in(folder, found)
    needs = found.group_by(&:from).transform_values { |all| all.map(&:to).uniq }
    reaches = lambda do |from, to, seen|
      (needs[from] || []).any? do |next_one|
        next_one == to || (seen.add?(next_one) && reaches.call(next_one, to, seen))
      end
    end
    closing = found.select { |import| reaches.call(import.to, import.from, Set.new) }
    closing.map do |import|
      "in #{['src', *folder].join('/')}: #{import.from} -> #{import.to} (#{import.where})"
    end.uniq.sort
  end
end
