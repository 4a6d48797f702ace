# frozen_string_literal: true

# Applications that do harm, each in another way: `highball bench isolation` measures what others notice of it. The same
# code runs in an application and in a separate process, `ruby burner.rb`.

# The file BURNS gets a line for each time that one began.
def begins(burner)
  File.write(ENV.fetch("BURNS"), "#{burner}\n", mode: "a")
end
