# frozen_string_literal: true

require "open3"

# For tests of applications that are for users with a password.
module BasicAuthUsers
  PASSWORD = "swordfish"
  BCRYPT = PASSWORD.crypt("$2y$04$abcdefghijklmnopqrstuu").freeze
  TRUSTED = %w[--trusted-proxies 127.0.0.1].freeze

  # Answers with the strings of its env, the number of requests before, and the digest of the body.
  APP = <<~RUBY
    require "digest"
    require "json"
    count = -1
    run lambda { |env|
      count += 1
      strings = env.select { |_, value| value.is_a?(String) }
      facts = { "requests before" => count, "body" => Digest::SHA256.hexdigest(env["rack.input"].read) }
      [200, { "content-type" => "application/json" }, [strings.merge(facts).to_json]]
    }
  RUBY

  private

  # The folder of an application, beside a file with these users.
  def app(users, files = {})
    @users = File.join(folder_with, "htpasswd")
    write_users(users) if users
    folder_with({ "config.ru" => APP, "public/a.txt" => "a file\n" }.merge(files))
  end

  def serve_users(users, *options, files: {})
    serve(app(users, files), *options, "--basic-auth", @users)
  end

  # As an editor does: the server never sees half of it.
  def write_users(users)
    File.write("#{@users}.new", users.map { |name, hash| "#{name}:#{hash}\n" }.join)
    File.rename("#{@users}.new", @users)
  end

  def by(name, password = PASSWORD) = { "Authorization" => "Basic #{["#{name}:#{password}"].pack('m0')}" }

  # What users get who each come from another address.
  def statuses(server, names, password = PASSWORD)
    names.map do |name|
      address = "198.51.100.#{@address = @address.to_i + 1}"
      server.get("/", by(name, password).merge("X-Forwarded-For" => address)).status
    end
  end

  def env_of_user(answer) = env_of(answer.body).values_at("REMOTE_USER", "AUTH_TYPE")

  def openssl(kind) = Open3.capture2("openssl", "passwd", kind, "-stdin", stdin_data: "#{PASSWORD}\n").first.chomp
end
