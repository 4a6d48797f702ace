# frozen_string_literal: true

# For end-to-end tests: copies of the example blog with more in them.
module ChangedBlog
  private

  # A copy with these lines of config/routes.rb, and the Ruby code that has their controllers.
  def blog_with(code, routes)
    blog = copy_of_example("blog")
    insert(blog, "config/routes.rb", routes)
    File.write(File.join(blog, "more.rb"), code)
    File.write(File.join(blog, "config/environment.rb"), "\nrequire_relative '../more'\n", mode: "a")
    blog
  end

  # Inserts a text behind the first such place in a file, which has to have one.
  def insert(blog, file, text, after: /\.(?:draw|configure) do\n/)
    path = File.join(blog, file)
    source = File.read(path)
    assert_match after, source
    File.write(path, source.sub(after) { |found| found + text })
  end
end
