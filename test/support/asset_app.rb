# frozen_string_literal: true

# A Rails application with assets of every kind, built by the asset pipeline that this Debian has. It records the
# requests that reach Ruby.
module AssetApp
  REACHED = "tmp/reached"

  ENVIRONMENT = <<~RUBY.freeze
    require "logger"
    require "rails"
    require "action_controller/railtie"
    begin
      require "sprockets/railtie"
    rescue LoadError
      require "propshaft"
      require "propshaft/railtie"
    end

    # The first of all middlewares.
    class WriteDown
      FILE = File.expand_path("../#{REACHED}", __dir__)

      def initialize(app) = @app = app

      def call(env)
        File.write(FILE, env["PATH_INFO"] + "\\n", mode: "a")
        @app.call(env)
      end
    end

    class AssetApp < Rails::Application
      config.root = File.expand_path("..", __dir__)
      config.eager_load = false
      config.hosts.clear
      config.secret_key_base = "x" * 64
      config.logger = Logger.new($stderr, level: :fatal)
      config.public_file_server.headers = { "Cache-Control" => ENV["OWN_HEADER"] } if ENV["OWN_HEADER"]
      config.middleware.insert_before 0, WriteDown

      # The pipeline's path of an asset, by its name.
      def digested(name)
        found = assets.respond_to?(:load_path) ? assets.load_path.find(name)&.digested_path : assets[name]&.digest_path
        found.to_s
      end

      routes.append do
        root to: ->(_env) { [200, { "content-type" => "text/plain" }, ["home"]] }
        get "digested", to: ->(env) {
          name = Rack::Utils.parse_query(env["QUERY_STRING"])["name"]
          [200, { "content-type" => "text/plain" }, [Rails.application.digested(name)]]
        }
      end
    end
    Rails.application.initialize!
  RUBY

  BYTES = Random.new(7)
  IMAGE = BYTES.bytes(3000)

  # Assets that a pipeline serves unchanged.
  PLAIN = {
    "images/logo.png" => IMAGE,
    "images/empty.gif" => "",
    "images/icons/a.svg" => "<svg/>",
    "images/icons.svg" => "<svg><g/></svg>",
    "images/name.min.png" => BYTES.bytes(10),
    "images/hyphen-ated.png" => BYTES.bytes(11),
    "images/two.png" => BYTES.bytes(12),
    "images/two.svg" => "<svg>two</svg>",
    "images/ünï cöde.png" => BYTES.bytes(13),
    "images/medium.webp" => BYTES.bytes(300_000),
    "fonts/text.woff" => BYTES.bytes(2000),
    "fonts/text.ttf" => BYTES.bytes(2001),
    "fonts/text.woff2" => BYTES.bytes(2002)
  }.freeze

  # The same, but read by another thread, because its digest takes a while.
  LARGE = { "images/large.png" => BYTES.bytes(5_000_000), "images/larger.mp4" => BYTES.bytes(20_000_000) }.freeze

  # Assets that the pipeline may change: its answer counts.
  INTRICATE = {
    "images/one.jpg" => "jpg", "images/one.jpeg" => "jpeg",
    "images/made.png" => "made", "images/made.png.erb" => "<%= 1 + 1 %>",
    "images/photo-20240101.png" => "a date", "images/photo-original.png" => "a word", "images/photo.png" => "itself",
    "images/a+b.png" => "plus", "images/a..b.png" => "dots", "images/.hidden.png" => "hidden",
    "images/old.png~" => "old",
    "images/name.self.png" => "a pipeline's name", "images/without" => "no extension", "images/odd.xyz" => "unknown",
    "images/first/index.png" => "the index", "javascripts/later/index.png" => "a folder's",
    "stylesheets/later.png" => "the file",
    "stylesheets/plain.css" => "p { color: red }\n", "stylesheets/url.css" => "p { background: url(logo.png) }\n",
    "stylesheets/crlf.css" => "p { color: red }\r\n", "stylesheets/require.css" => "/*= require plain */\n",
    "javascripts/plain.js" => "f()", "javascripts/map.js" => "f();\n//# sourceMappingURL=map.js.map\n",
    "javascripts/data.json" => "{}\n", "javascripts/crlf.json" => "{}\r\n", "javascripts/bom.json" => "\u{feff}{}\n",
    "javascripts/latin.json" => "[\"\xE4\"]".b, "javascripts/note.txt" => "n\r\n",
    "javascripts/page.html" => "<p>ä</p>",
    "javascripts/feed.xml" => "<a>\r\n</a>", "javascripts/rows.yml" => "a: 1\n", "javascripts/a.b.c.svg" => "<svg/>"
  }.freeze

  # The same names elsewhere: the first folder wins.
  AGAIN = %w[logo.png one.jpeg photo.png].to_h { |name| ["lib/assets/images/#{name}", "shadowed"] }.freeze

  FILES = { "config/environment.rb" => ENVIRONMENT, "app/assets/config/manifest.js" => "", REACHED => "" }
          .merge(PLAIN.merge(LARGE, INTRICATE).transform_keys { |name| "app/assets/#{name}" }, AGAIN,
                 "public/robots.txt" => "User-agent: *\n", "public/assets/built.png" => "built before").freeze

  # Their content types.
  NAMES = [*PLAIN.keys, *LARGE.keys, *INTRICATE.keys].map { |file| file.partition("/").last }.freeze
end
