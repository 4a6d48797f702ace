# frozen_string_literal: true

require_relative "debian13"
require_relative "job"

# A step of bin/test. It begins when the steps in `after` have ended and those in `needs` have passed, if they run. Each
# of its `files` is a job; without files, `body` is what it does. `marks` are like those of files.
Step = Struct.new(:name, :after, :needs, :quick, :again, :marks, :files, :environment, :in_debian13, :body,
                  keyword_init: true) do
  def jobs = files ? files.call.map { |file| Job.new(self, file) } : [Job.new(self)]

  def command(file)
    return ["ruby", File.join(__dir__, "main.rb"), "--step", name] unless file

    ruby = ["ruby", "-Ilib", "-Itest", file, "--verbose"]
    in_debian13 ? Debian13.command(ruby) : ruby
  end
end

# The steps, in the order in which the summary lists them: steps.rb.
module Steps
  ALL = [] # rubocop:disable Style/MutableConstant

  def self.step(name, after: [], needs: [], marks: [], environment: {}, **options, &body)
    lists = { after: after, needs: needs, marks: marks, environment: environment }
    ALL << Step.new(name: name, body: body, **lists, **options)
  end

  def self.named(name)
    ALL.find { |step| step.name == name } or raise Mistake, "there is no step #{name}; bin/test --list"
  end
end
