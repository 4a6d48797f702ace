# frozen_string_literal: true

# A small answer for most, and for who asks for /large one that no socket holds: Linux lets one grow to 4 MiB.
LARGE = ("0123456789abcde\n" * (512 * 1024)).freeze # 8 MiB

type = Rack::CONTENT_TYPE
length = Rack::CONTENT_LENGTH

run(lambda do |env|
  body = env["PATH_INFO"] == "/large" ? LARGE : "Hello World"
  [200, { type => "text/plain", length => body.bytesize.to_s }, [body]]
end)
