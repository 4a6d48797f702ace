# frozen_string_literal: true

module Highball
  # The blocks that an application registers for certain moments, in order of registration.
  class Hooks
    def initialize
      @blocks = Hash.new { |blocks, moment| blocks[moment] = [] }
    end

    def add(moment, block)
      raise ArgumentError, "#{moment} needs a block" unless block

      @blocks[moment] << block
      nil
    end

    def any?(moment) = !@blocks[moment].empty?

    def run(moment, *arguments)
      @blocks[moment].each { |block| block.call(*arguments) }
    end
  end
end
