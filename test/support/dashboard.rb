# frozen_string_literal: true

# A test of the dashboard.
module Dashboard
  # Requests that do not end are there for as long as a test takes.
  DRAIN = ["--drain-timeout", "1s", "--request-timeout", "none"].freeze

  private

  def tcp = ["--admin", "127.0.0.1:0"]
  def page(server) = "#{server.status['admin'].fetch(0)}/"

  def token_of(server)
    output = highball("top", "--token", "--port", server.port.to_s)
    assert_match(/\A\h{32}\n\z/, output)
    output.chomp
  end
end
