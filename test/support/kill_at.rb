# frozen_string_literal: true

# Processes that are killed at a step of what they do.
module KillAt
  # This process is killed when a method of the class is called (`:before`), or has returned (`:after`). The block
  # changes the argument.
  def kill_at(owner, step, moment)
    owner.prepend(Module.new do
      define_method(step) do |*arguments, **options|
        Process.kill(:KILL, Process.pid) if moment == :before
        arguments = [yield(*arguments)] if block_given?
        super(*arguments, **options)
        Process.kill(:KILL, Process.pid)
      end
    end)
  end
end
