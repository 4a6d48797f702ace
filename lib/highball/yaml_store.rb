# frozen_string_literal: true

require "yaml"
require_relative "pstore"

module Highball
  # A PStore whose file is YAML, like Ruby's YAML::Store, for people to read and edit:
  #
  #     require "highball/yaml_store"
  #
  #     store = Highball::YAMLStore.new("settings.yml", indentation: 4)
  #     store.transaction { store["colours"] = %w[red green] }
  #
  # Reading, it creates objects of the classes that YAML.safe_load creates, of Symbol, and of those in
  # `permitted_classes`.
  class YAMLStore < PStore
    # permitted_classes:: classes whose objects the file may contain, for example `[Time, Date]`
    # thread_safe, durable, in_place:: see PStore::new
    # others:: options of YAML.dump, for example `indentation: 4`
    def initialize(file, thread_safe = true, permitted_classes: [], durable: true, in_place: false, **yaml_options) # rubocop:disable Style/OptionalBooleanParameter
      super(file, thread_safe, durable: durable, in_place: in_place)
      @permitted_classes = [Symbol, *permitted_classes]
      @yaml_options = yaml_options
    end

    private

    def dump(table)
      YAML.dump(table, **@yaml_options)
    end

    def load(content)
      YAML.safe_load(content, permitted_classes: @permitted_classes, aliases: true) || {}
    end
  end
end
