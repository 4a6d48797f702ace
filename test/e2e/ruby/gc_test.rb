# frozen_string_literal: true

# marks: debian13

require "json"
require_relative "../../support/e2e_test"

# Workers collect garbage between requests, and with more room for it, unless that is the user's affair.
class GcTest < E2ETest
  # With a heap of some size. A request allocates a tenth of its free slots, and tells of collections so far.
  APP = <<~'RUBY'
    require "json"
    KEPT = Array.new(200_000) { Object.new }
    run lambda { |_env|
      before = GC.count
      Array.new(20_000) { Object.new }
      text = JSON.generate(before: before, after: GC.count, variables: ENV.keys.grep(/GC|COLLECTOR/))
      [200, {}, [text]]
    }
  RUBY
  REQUESTS = 150
  # A visitor thinks (seconds): the worker has nothing to do meanwhile, for far longer than it looks whether that is so.
  PAUSE = 0.02
  ON = "garbage collected between requests, 45% of the heap free"

  def setup
    super
    @folder = folder_with("config.ru" => APP)
  end

  def test_garbage_is_collected_between_requests
    within, between = collections(serve(@folder))
    assert_operator between, :>, 3
    assert_operator within, :<, between / 2
  end

  def test_it_is_collected_within_them_without_the_option
    server = serve(@folder, "--gc", "off")
    within, between = collections(server)
    assert_operator within, :>, 3
    assert_operator between, :<, within / 2
    assert_equal({ "off" => "gc = off" }, gc(server).slice("off"))
    assert_includes server.log, 'gc="as Ruby has it: gc = off"'
  end

  def test_the_heap_has_more_room_and_programs_do_not_know_of_it
    tuned = serve(@folder)
    assert_equal ON, gc(tuned)["name"]
    assert_empty ask(tuned)["variables"]
    # An idle worker collects when three quarters of the room are used.
    of_room = collections(tuned).sum * 0.75
    of_usual_room = collections(serve(@folder, "--gc", "off")).sum
    assert_operator of_room, :<, of_usual_room * 0.9
  end

  def test_there_is_less_room_where_a_worker_has_little_memory
    assert_equal "garbage collected between requests", gc(serve(@folder, "--memory-limit", "400m"))["name"]
  end

  def test_what_the_user_has_chosen_counts
    server = serve(@folder, env: { "RUBY_GC_HEAP_FREE_SLOTS_GOAL_RATIO" => "0.4" })
    assert_equal "RUBY_GC_HEAP_FREE_SLOTS_GOAL_RATIO is set", gc(server)["off"]
    assert_equal "the environment is development", gc(serve(@folder, environment: "development"))["off"]
  end

  private

  def ask(server) = JSON.parse(server.get("/").body)

  def gc(server) = server.status.fetch("gc")

  # Of a number of requests: [within them, between them].
  def collections(server)
    answers = Array.new(REQUESTS) { ask(server).tap { sleep PAUSE } }
    within = answers.sum { |answer| answer["after"] - answer["before"] }
    [within, answers.last["after"] - answers.first["before"] - within]
  end
end
