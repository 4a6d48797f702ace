# frozen_string_literal: true

require_relative "../diagnosis"

module Highball
  module DevelopmentServer
    # Why an application did not boot: the diagnosis that Linux has, as text.
    class Report
      attr_reader :fields

      def initialize(exception)
        @fields = Diagnosis.fields_of(exception)
      end

      def text
        error = @fields[:error]
        parts = ["    #{error[:class]}: #{error[:message]}".gsub("\n", "\n    "), place(error), remedy]
        "#{parts.compact.join("\n\n")}\n"
      end

      private

      def place(error)
        "at #{[error[:file], error[:line]].compact.join(':')}" if error[:file]
      end

      def remedy
        return unless @fields[:remedy]

        ["What to do: #{@fields[:remedy]}", *("    #{@fields[:command]}" if @fields[:command])].join("\n\n")
      end
    end
  end
end
