# frozen_string_literal: true

# A small answer for most, and one that no socket's buffers hold for who asks for /large.
LARGE = ("0123456789abcde\n" * (64 * 1024)).freeze # 1 MiB

run(lambda do |env|
  body = env["PATH_INFO"] == "/large" ? LARGE : "Hello World"
  [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]
end)
