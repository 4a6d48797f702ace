# frozen_string_literal: true

require_relative "../../support/held_cable_test_case"

# The option `cable`: Highball's adapter in the place of an adapter that reaches the clients of one worker alone.
class SharedCableTest < HeldCableTestCase
  REPLACED = "Highball's adapter takes its place"

  def test_broadcasts_reach_the_clients_of_all_workers
    start_with("async", workers: 3)
    clients = Array.new(6) { client.subscribe }
    assert_equal 6, @server.status.dig("hub", "cable_clients")
    20.times { |number| broadcast("room", number.to_s) }
    clients.each { |one| assert_equal Array.new(20, &:to_s), one.texts_until("19") }
    assert_equal 1, @server.log.scan(REPLACED).length
    assert_match(/adapter async, .*cause=cable_adapter/, @server.log)
  end

  def test_the_number_of_workers_may_grow
    start_with("inline", "--min-workers", "1", "--max-workers", "2", workers: "auto")
    assert_equal "highball", adapter
  end

  def test_one_worker_reaches_all_clients
    start_with("async", workers: 1)
    assert_equal "async", adapter
    client.subscribe
    assert_operator @server.full_status["hijacked"], :>, 0
    refute_includes @server.log, REPLACED
  end

  def test_off
    start_with("async", "--cable", "off", workers: 2)
    assert_equal "async", adapter
  end

  # What an application has chosen stays: such adapters reach clients of other machines as well.
  def test_other_adapters
    %w[redis postgresql solid_cable test].each do |name|
      start_with(name, workers: 2)
      assert_equal name, adapter
      refute_includes @server.log, REPLACED
    end
  end

  def test_an_adapter_that_was_used_while_the_application_booted
    start_with("async", at_boot: 'ActionCable.server.broadcast("room", { text: "at boot" })', workers: 2)
    one = client.subscribe
    one.perform("say", text: "hello")
    assert_equal "hello", one.text
    assert_equal 1, @server.status.dig("hub", "cable_clients")
  end

  def test_workers_that_load_the_application
    start_with("async", "--preload", "off", workers: 2)
    clients = Array.new(4) { client.subscribe }
    broadcast("room", "to all")
    assert_equal ["to all"], clients.map(&:text).uniq
  end

  def test_restarts
    start_with("async", workers: 2)
    one = client.subscribe
    highball("restart", *@server.which, within: 60)
    highball("refork", *@server.which, within: 60)
    broadcast("room", "hello")
    assert_equal "hello", one.text
  end

  private

  def start_with(name, *options, workers:, at_boot: "")
    @folder = folder_with("config.ru" => "#{CableApp.config(adapter: name)}\n#{at_boot}\n")
    @server = serve(@folder, *options, workers: workers)
  end

  def adapter = @server.get("/adapter").body
end
