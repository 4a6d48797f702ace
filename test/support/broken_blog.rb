# frozen_string_literal: true

# For tests of applications that do not boot: the blog, with something wrong with its database.
module BrokenBlog
  # Lines for config.ru, instead of the line that creates the database. They check at boot what Rails in development
  # checks before each request.
  UNMIGRATED = "ActiveRecord::Migration.public_send(ActiveRecord::Migration.respond_to?(:check_all_pending!) ? " \
               ":check_all_pending! : :check_pending!)\n"
  # PostgreSQL and MySQL refuse like this; SQLite would create the database.
  WITHOUT_DATABASE = "raise ActiveRecord::NoDatabaseError unless Rails.root.glob('db/*.sqlite3').any?\n"

  # The folder of a blog that does not create its database, and has this line in config.ru.
  def blog_with(line)
    blog = copy_of_example("blog")
    config = File.join(blog, "config.ru")
    File.write(config, File.read(config).sub("Blog.prepare_database\n", line))
    blog
  end
end
