# frozen_string_literal: true

require_relative "http_connection"

# What the clients of FastCGI and LSAPI have in common: the variables that a web server sends for a request, and the
# head of an answer.
class CgiConnection < ClientConnection
  # Sends one request and reads its answer. Its body may be a string or an enumerable of strings. `params` are variables
  # beside those of `variables`, or other values for them; nil leaves one out. With a block, pieces of the answer's body
  # are yielded as they arrive, and not kept.
  def request(method, target, headers = {}, body = nil, params: {}, within: WITHIN, **options, &piece)
    send_request(method, target, headers, body, params: params, **options)
    read_response(within: within, &piece)
  end

  private

  # The variables of a request, without header fields, as web servers send them.
  def variables(method, target)
    path, query = target.split("?", 2)
    {
      "REQUEST_METHOD" => method, "REQUEST_URI" => target, "SCRIPT_NAME" => path, "QUERY_STRING" => query.to_s,
      "SERVER_PROTOCOL" => "HTTP/1.1", "REQUEST_SCHEME" => "http", "GATEWAY_INTERFACE" => "CGI/1.1",
      "SERVER_SOFTWARE" => "test", "SERVER_NAME" => "test", "SERVER_ADDR" => "192.0.2.1", "SERVER_PORT" => "80",
      "REMOTE_ADDR" => "192.0.2.7", "REMOTE_PORT" => "4711", "DOCUMENT_ROOT" => "/srv",
      "SCRIPT_FILENAME" => "/srv#{path}"
    }
  end

  # An answer from the fields of its head, of which Status may be one; without a body yet.
  def response_from(fields, status: nil)
    name, line = fields.assoc("status")
    fields -= [[name, line]] if line
    number, reason = line.to_s.split(" ", 2)
    HttpResponse.new(status: status || (number || 200).to_i, reason: reason.to_s, fields: fields, body: +"".b)
  end

  # Exactly this many bytes; nil if the connection ends before the first.
  def take(count, optional: false)
    until @buffer.bytesize >= count
      next if fill(optional: true)
      return nil if optional && @buffer.empty?

      cut_off
    end
    @buffer.slice!(0, count)
  end
end
