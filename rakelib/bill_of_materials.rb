# frozen_string_literal: true

require "json"
require "open3"

# The crates that the programs of a gem are made of, with versions, licenses and checksums: CycloneDX 1.5, as JSON.
class BillOfMaterials
  FORMAT = { "bomFormat" => "CycloneDX", "specVersion" => "1.5", "version" => 1 }.freeze
  LOCKED = /^\[\[package\]\]\nname = "(.+)"\nversion = "(.+)"\nsource = .+\nchecksum = "(\h+)"$/

  # `target` is Rust's name for the platform, `workspace` the folder of the crates' Cargo.lock.
  def initialize(crates, target, workspace:)
    @crates = crates
    @target = target
    @workspace = workspace
  end

  # The bill of the gem with this specification.
  def to_json(spec)
    JSON.pretty_generate(FORMAT.merge("metadata" => { "component" => gem(spec) }, "components" => components)) << "\n"
  end

  private

  def gem(spec)
    { "type" => "application", "name" => spec.name, "version" => spec.version.to_s,
      "purl" => "pkg:gem/#{spec.name}@#{spec.version}?platform=#{spec.platform}",
      "licenses" => spec.licenses.map { |license| { "license" => { "id" => license } } } }
  end

  def components
    checksums = File.read(File.join(@workspace, "Cargo.lock")).scan(LOCKED).to_h do |name, version, sum|
      [[name, version], sum]
    end
    linked.map do |name, version, license|
      sum = checksums[[name, version]]
      { "type" => "library", "name" => name, "version" => version, "purl" => "pkg:cargo/#{name}@#{version}",
        "licenses" => [{ "expression" => license }],
        "hashes" => sum && [{ "alg" => "SHA-256", "content" => sum }] }.compact
    end
  end

  # [name, version, license] of all that is linked in: not of what only runs while it is built.
  def linked
    command = ["cargo", "tree", "--locked", "--target", @target, "--edges", "normal,no-proc-macro", "--prefix", "none",
               "--format", "{p}\t{l}", *@crates.flat_map { |crate| ["-p", crate] }]
    output, errors, status = Open3.capture3(*command, chdir: @workspace)
    raise "#{command.join(' ')}: #{errors}" unless status.success?

    lines = output.lines(chomp: true).reject { |line| line.empty? || line.include?("(proc-macro)") }
    lines.map { |line| line.match(/\A(\S+) v(\S+).*?\t(.*?)(?: \(\*\))?\z/).captures }.uniq.sort
  end
end
