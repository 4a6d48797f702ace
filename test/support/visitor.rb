# frozen_string_literal: true

# A visitor of a site: a client that keeps its cookies, whichever connection its requests take.
class Visitor
  COOKIE = "highball-rollout"

  # Who has this number from an earlier visit.
  def self.numbered(number)
    new.tap { |visitor| visitor.number = number }
  end

  attr_accessor :number

  # Sends a request over this connection, and returns the answer.
  def get(connection, target = "/", method: "GET", body: nil)
    fields = number ? { "Cookie" => "theme=dark; #{COOKIE}=#{number}" } : {}
    answer = connection.request(method, target, fields, body)
    given = answer.values("set-cookie").filter_map { |line| line[/\A#{COOKIE}=(\d+);/o, 1] }
    @number = given.first.to_i if given.any?
    answer
  end

  # The version that answers.
  def version(connection, ...) = get(connection, ...)["x-version"]
end
