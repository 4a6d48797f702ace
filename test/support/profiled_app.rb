# frozen_string_literal: true

# An application with methods that a profile is to find, and profiles of it.
module ProfiledApp
  SOURCE = <<~'RUBY'
    module Shop
      def self.until_later(seconds = 0.05)
        ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
        yield while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
      end

      def self.compute = until_later { add_up(2_000) }

      def self.add_up(count)
        sum = 0
        sum += count -= 1 while count > 0
        sum
      end

      def self.rest = sleep(0.05)
      def self.make = until_later { make_strings }
      def self.make_strings = Array.new(200) { |number| "text #{number}" }
      def self.deep(depth) = depth.zero? ? until_later { add_up(100) } : deep(depth - 1)

      # Methods are defined all the time, as templates are: 200 a request. Only the last ones stay, so that the memory of
      # the application does not grow.
      def self.define
        @number ||= 0
        200.times do
          name = "made_#{(@number += 1) % 3_000}"
          singleton_class.class_eval("def #{name} = add_up(3_000)", "made.rb", 1)
          public_send(name)
        end
      end
    end

    run lambda { |env|
      case env["PATH_INFO"]
      when %r{\A/compute} then Shop.compute
      when %r{\A/rest} then Shop.rest
      when %r{\A/make} then Shop.make
      when %r{\A/deep} then Shop.deep(5_000)
      when %r{\A/define} then Shop.define
      when %r{\A/fork} then Process.wait(fork { Shop.compute })
      end
      [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
    }
  RUBY

  private

  def profiled_app = folder_with("config.ru" => SOURCE)

  # Stacks of a profile and their weights: {["Shop.compute", "Shop.add_up"] => 12}. Clients ask for these targets
  # meanwhile.
  def stacks(server, *options, targets: [], seconds: 2)
    text = while_asked(server, *targets) { profile(server, "--seconds", seconds.to_s, "--output", "-", *options) }
    folded(text)
  end

  def folded(text)
    text.lines.to_h do |line|
      assert_match(/\A\S.* \d+\n\z/, line)
      stack, _, weight = line.rpartition(" ")
      [stack.split(";"), weight.to_i]
    end
  end

  def profile(server, *options) = highball("profile", *options, *server.which, within: 60)

  # Runs the block while a client for each of these targets asks for it again and again. Workers may be killed
  # meanwhile.
  def while_asked(server, *targets)
    ended = false
    clients = targets.map do |target|
      Thread.new do
        until ended
          begin
            server.get(target, within: 30)
          rescue SystemCallError, EOFError, HttpConnection::BadAnswer
            next # its worker was killed
          end
        end
      end
    end
    yield
  ensure
    ended = true
    clients&.each(&:join)
  end

  # The share of all weights that stacks with this method have.
  def share(stacks, method) = part(stacks) { |stack| stack.any? { |frame| named?(frame, method) } }

  # The share of stacks that end with this method.
  def own_share(stacks, method) = part(stacks) { |stack| named?(stack.last, method) }

  def part(stacks, &is_meant)
    stacks.select { |stack, _| is_meant.call(stack) }.values.sum / [stacks.values.sum, 1].max.to_f
  end

  # Before Ruby 3.3, methods that were only seen waiting have no class.
  def named?(frame, method) = frame == method || (RUBY_VERSION < "3.3" && frame == method[/\w+\z/])
end
