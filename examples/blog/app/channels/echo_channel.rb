# frozen_string_literal: true

# Sends every text back to its sender.
class EchoChannel < ApplicationCable::Channel
  LONGEST_TEXT = 1_000 # characters

  def echo(data)
    transmit({ text: data["text"].to_s.first(LONGEST_TEXT) })
  end
end
