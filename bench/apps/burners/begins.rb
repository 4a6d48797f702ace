# frozen_string_literal: true

# Applications that do harm, each in a way of its own: `highball bench isolation` measures what others notice of it.
# What burns is the same code in an application and in a process of its own, `ruby burner.rb`.

# Whoever wants to know whether they have burnt finds a line in the file BURNS for each time that one began.
def begins(burner)
  File.write(ENV.fetch("BURNS"), "#{burner}\n", mode: "a")
end
