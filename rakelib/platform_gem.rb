# frozen_string_literal: true

require "fileutils"
require "rubygems/package"

# A gem for one platform: nothing is compiled where it is installed, because its programs are built already, or it has
# none. Its bytes depend on nothing but its contents: files have a fixed order, time and mode.
class PlatformGem
  # 1980, where nothing says when the sources are from.
  EARLIEST = "315619200"
  BILL = "sbom.cdx.json"

  # `platform` is RubyGems' name for it. `built` are the files that are not in the source tree:
  # {"libexec/highball" => "/path/of/it"}. `bill`: what they are made of.
  def initialize(spec, platform, built = {}, bill = nil, root:)
    @spec = spec
    @platform = platform
    @built = built
    @bill = bill
    @root = root
  end

  # Writes it to this folder, and returns its path.
  def write(folder)
    stage = File.join(@root, "target/gems", "#{@spec.name}-#{@platform}")
    FileUtils.rm_rf(stage)
    fill(stage)
    FileUtils.mkdir_p(folder)
    made = Dir.chdir(stage) { PlatformGem.with_fixed_time(@root) { Gem::Package.build(@spec) } }
    FileUtils.mv(File.join(stage, made), folder)
    File.join(folder, made)
  end

  # Runs the block with the time of the sources as the time of all that is packed.
  def self.with_fixed_time(root)
    before = ENV.fetch("SOURCE_DATE_EPOCH", nil)
    ENV["SOURCE_DATE_EPOCH"] = before || committed(root) || EARLIEST
    yield
  ensure
    ENV["SOURCE_DATE_EPOCH"] = before
  end

  # The time of the last commit, or nil: these sources are in no repository, or there is no Git.
  def self.committed(root)
    time = IO.popen(%w[git log -1 --format=%ct], chdir: root, err: File::NULL, &:read).strip
    time unless time.empty?
  rescue Errno::ENOENT
    nil
  end
  private_class_method :committed

  private

  def fill(stage)
    sources = @spec.files.to_h { |path| [path, File.join(@root, path)] }
    files = sources.merge(@built)
    files.each { |path, source| copy(source, File.join(stage, path)) }
    @spec.platform = @platform
    write_file(File.join(stage, BILL), @bill.to_json(@spec)) if @bill
    @spec.files = [*files.keys, *(BILL if @bill)].sort
  end

  def copy(source, destination)
    FileUtils.mkdir_p(File.dirname(destination))
    FileUtils.cp(source, destination)
    File.chmod(File.executable?(source) && !source.end_with?(".so") ? 0o755 : 0o644, destination)
  end

  def write_file(path, text)
    File.write(path, text)
    File.chmod(0o644, path)
  end
end
