# frozen_string_literal: true

# Applications that do harm, each in another way.

# The file BURNS gets a line for each time that one began.
def begins(burner)
  File.write(ENV.fetch("BURNS"), "#{burner}\n", mode: "a")
end
