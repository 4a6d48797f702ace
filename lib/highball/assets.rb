# frozen_string_literal: true

require_relative "exception_words"
require_relative "message"

module Highball
  # The assets of a Rails application that the front may serve: the path below which they are, and, where the asset
  # pipeline serves source files (in development), which of these it serves unchanged. The pipeline serves all others.
  class Assets
    # Propshaft's compilers, and the text that a file must not contain if the compiler is to leave it unchanged.
    PROPSHAFT_MARKS = {
      "Propshaft::Compiler::CssAssetUrls" => "url(",
      "Propshaft::Compiler::JsAssetUrls" => "RAILS_ASSET_URL(",
      "Propshaft::Compiler::SourceMappingUrls" => "sourceMappingURL="
    }.freeze

    # Extensions that some releases of Sprockets do not know: they serve such files unchanged, without a content type.
    UNKNOWN_TO_SPROCKETS = %w[avif wasm woff2].freeze

    # The description for the supervisor; nil if the application has no assets.
    def self.of(application)
      assets = application.config.assets if application.config.respond_to?(:assets)
      prefix = assets&.prefix
      prefix && { prefix: prefix.to_s, pipeline: new(application).pipeline }
    rescue StandardError => e # an unknown kind of pipeline: the application can still serve all its assets
      warn "highball: the application serves its assets itself: #{ExceptionWords.summary(e)} " \
           "(#{ExceptionWords.new(e).lines.first})"
      nil
    end

    def initialize(application)
      @config = application.config.assets
      @environment = application.assets if application.respond_to?(:assets)
    end

    # The pipeline that serves source files, or nil.
    def pipeline
      if defined?(::Propshaft::Assembly) && @environment.is_a?(::Propshaft::Assembly)
        propshaft if @config.server
      elsif defined?(::Sprockets::Environment) && @environment.is_a?(::Sprockets::Environment)
        sprockets # in production, where it does not look for changes, it is a CachedEnvironment
      end
    end

    private

    def propshaft
      load_path = @environment.load_path
      types = ::Mime::EXTENSION_LOOKUP.transform_values(&:to_s)
      { scheme: "propshaft", version: load_path.version.to_s, folders: real(load_path.paths), types: types,
        plain: types.transform_values { |type| propshaft_condition(type) }.compact }
    end

    # Nil if a compiler is unknown.
    def propshaft_condition(type)
      compilers = @environment.compilers.registrations.fetch(type, [])
      marks = compilers.map { |compiler| PROPSHAFT_MARKS[compiler.name] }
      { text: false, unless: marks.uniq } unless marks.include?(nil)
    end

    def sprockets
      return unless @environment.digest_class == ::Digest::SHA256

      # Up to version 3 the environment's version is no part of a digest.
      version = ::Sprockets::VERSION.to_i > 3 ? @environment.version.to_s : ""
      types = sprockets_types
      untyped = (UNKNOWN_TO_SPROCKETS - types.keys).to_h { |extension| [extension, nil] }
      { scheme: "sprockets", version: version, folders: real(@environment.paths), types: types,
        plain: types.merge(untyped).transform_values { |type| sprockets_condition(type) }.compact }
    end

    # Types by extension; engines (of version 3) name theirs apart.
    def sprockets_types
      config = @environment.config
      types = config.fetch(:engine_mime_types, {}).merge(config[:mime_exts])
      types.select { |extension, _| extension.match?(/\A\.\w+\z/) }
           .transform_keys { |extension| extension.delete_prefix(".") }
    end

    # Nil if Sprockets processes files of this type, or transforms another type into it.
    def sprockets_condition(type)
      return if @environment.config[:inverted_transformers][type].to_a.any?

      case processors(type)
      when [] then { text: false, unless: [] }
      when [::Sprockets::FileReader] then { text: true, unless: [] } if only_decoded?(type)
      end
    end

    def processors(type)
      engines = @environment.method(:processors_for).arity == 4 ? [[]] : [] # of version 3
      @environment.send(:processors_for, type, type, *engines, nil)
    end

    # Whether Sprockets only decodes files of this type, which leaves UTF-8 with Unix line endings unchanged. (For text/
    # types the answer names a charset, which Sprockets detects in other ways.)
    def only_decoded?(type)
      detects = @environment.mime_type_charset_detecter(type)
      !type.start_with?("text/") && detects == ::Sprockets::EncodingUtils::CHARSET_DETECT[:unicode]
    end

    # Folders that do not exist yet keep their place in the order.
    def real(folders)
      folders.map { |folder| Message.path(File.directory?(folder) ? File.realpath(folder) : File.expand_path(folder)) }
    end
  end
end
