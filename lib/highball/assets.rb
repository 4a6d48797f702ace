# frozen_string_literal: true

module Highball
  # What the front may serve of a Rails application's assets: below which path they are, and, where the asset pipeline
  # answers for source files (in development), which of these it gives out byte for byte. Whatever is not told here is
  # left to the pipeline.
  class Assets
    # Rewriting that is Propshaft's own: what a file must not contain for none of it to happen.
    PROPSHAFT_MARKS = {
      "Propshaft::Compiler::CssAssetUrls" => "url(",
      "Propshaft::Compiler::JsAssetUrls" => "RAILS_ASSET_URL(",
      "Propshaft::Compiler::SourceMappingUrls" => "sourceMappingURL="
    }.freeze

    # Types of which releases of Sprockets do not know, and which they therefore give out as they are, without a type.
    UNKNOWN_TO_SPROCKETS = %w[avif wasm woff2].freeze

    # What the supervisor is told of the Rails application; nil if it has no assets.
    def self.of(application)
      assets = application.config.assets if application.config.respond_to?(:assets)
      prefix = assets&.prefix
      prefix && { prefix: prefix.to_s, pipeline: new(application).pipeline }
    rescue StandardError => e # a pipeline that is not as it is known: it serves its files itself, and nothing is lost
      warn "highball: assets are left to the application: #{e.class}: #{e.message} (#{e.backtrace&.first})"
      nil
    end

    def initialize(application)
      @config = application.config.assets
      @environment = application.assets if application.respond_to?(:assets)
    end

    # What answers for source files, or nil.
    def pipeline
      if defined?(::Propshaft::Assembly) && @environment.is_a?(::Propshaft::Assembly)
        propshaft if @config.server
      elsif defined?(::Sprockets::Environment) && @environment.is_a?(::Sprockets::Environment)
        sprockets # what does not look for changes, in production, is a CachedEnvironment
      end
    end

    private

    def propshaft
      load_path = @environment.load_path
      types = ::Mime::EXTENSION_LOOKUP.transform_values(&:to_s)
      { scheme: "propshaft", version: load_path.version.to_s, folders: real(load_path.paths), types: types,
        plain: types.transform_values { |type| propshaft_condition(type) }.compact }
    end

    # Nil if what a compiler changes is not known.
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

    # Nil if something is done to files of this type, or if files of another one are made into it.
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

    # Whether reading is all that is done: UTF-8 with the lines' ends of Unix then stays as it is. (Of text/ types the
    # charset is part of the answer, and found out in ways of their own.)
    def only_decoded?(type)
      detects = @environment.mime_type_charset_detecter(type)
      !type.start_with?("text/") && detects == ::Sprockets::EncodingUtils::CHARSET_DETECT[:unicode]
    end

    # Those that are not there yet keep their place.
    def real(folders)
      folders.map { |folder| File.directory?(folder) ? File.realpath(folder) : File.expand_path(folder) }
    end
  end
end
