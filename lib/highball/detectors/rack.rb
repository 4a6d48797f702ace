# frozen_string_literal: true

module Highball
  module Detectors
    # An application without a known framework: a config.ru, or a file that defines an object with `call`.
    class Rack < Detector
      NAME = "Rack"
      GEM = "rack"
      MODULE = "::Rack"
      CODE = /^.*(?:\bdef (?:self\.)?call\b|->\s*\(?\s*_?env\b|\b(?:lambda|proc)\b.*\|\s*_?env\s*\|).*$/

      # The weakest evidence: every other framework uses Rack, too.
      def evidence
        words = "there is #{folder.rackup_file}" if folder.rackup_file
        words ||= super&.words || ("#{folder.named} was named" if folder.named)
        words && Evidence.new(RACK_FOUND, words)
      end

      private

      def main_file = folder.named || super

      def application_in(path)
        found = callables(path)
        return found.values.first if found.one?

        usual = found.find { |name, _| [:App, :Application, camel(path)].include?(name) }
        usual ? usual.last : raise(NoApplication, explain(found.keys, path))
      end

      # The objects in the file that respond to `call`, by name; classes with an instance method `call` as an instance.
      def callables(path)
        names = Object.constants.select { |name| Object.const_source_location(name)&.first == path }
        names.to_h { |name| [name, callable(Object.const_get(name))] }.compact
      end

      def callable(value)
        return value if value.respond_to?(:call)

        value.new if value.is_a?(Class) && value.method_defined?(:call) &&
                     [0, -1].include?(value.instance_method(:initialize).arity)
      end

      def camel(path) = File.basename(path, ".rb").split("_").map(&:capitalize).join.to_sym

      def explain(names, path)
        file = File.basename(path)
        return "#{file} defines several applications (#{names.sort.join(', ')}): call one of them App" if names.any?

        "#{file} defines nothing that responds to `call(env)`: define a constant App that does"
      end
    end
  end
end
