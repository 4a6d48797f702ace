# frozen_string_literal: true

require "cgi"

# Secrets as they stand in messages and requests, for tests of what shows them.
module SecretCorpus
  # Messages, and the secrets in them.
  TEXTS = {
    "stripe" => ["charge with sk_live_4eC39HqLyjWD", "4eC39HqLyjWD"],
    "stripe webhook" => ["signed by whsec_7Jq2LmNvQe", "7Jq2LmNvQe"],
    "github" => ["push with ghp_9sKd83hdKwQ1zPmX", "9sKd83hdKwQ1zPmX"],
    "github, fine-grained" => %w[github_pat_11AKD83JDKwq82 11AKD83JDKwq82],
    "gitlab" => %w[glpat-Kd83jdKWq82mAsdf Kd83jdKWq82mAsdf],
    "slack" => %w[xoxb-2847583920-aKdJwPqz aKdJwPqz],
    "aws" => ["key AKIAQWERTZUIOPASDFGH", "QWERTZUIOPASDFGH"],
    "azure" => ["AccountName=me;AccountKey=aZur3/k3y+x==;End=1", "aZur3/k3y+x"],
    "shared access signature" => ["https://me.blob.example/c?sv=1&sig=sAs8f%2Bq&sp=r", "sAs8f%2Bq"],
    "signed URL" => ["https://b.s3.example/k?X-Amz-Signature=4mz51gn&X-Amz-Expires=1", "4mz51gn"],
    "JSON web token" => ["jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.s1gnAtur3", "s1gnAtur3"],
    "bearer" => ["sent Bearer bEar3rT0ken", "bEar3rT0ken"],
    "basic" => ["Authorization: Basic bWU6YjRzMWM=", "bWU6YjRzMWM"],
    "basic, short" => ["Authorization: Basic xqz", "xqz"],
    "PEM" => ["-----BEGIN PRIVATE KEY-----\nMIIEpemB0dy\nsec0ndL1ne==\n-----END PRIVATE KEY-----",
              "pemB0dy", "sec0ndL1ne"],
    "slack webhook" => ["https://hooks.slack.com/services/T0SLK/B0HK/sLh00k", "sLh00k"],
    "discord webhook" => ["https://discord.com/api/webhooks/12/d1scH00k", "d1scH00k"],
    "telegram webhook" => ["https://api.telegram.org/bot12:t3leB0t/send", "t3leB0t"],
    "option of a command" => ["curl -u me:curlPw77 http://localhost", "curlPw77"],
    "LDAP bind" => ["ldapsearch -D cn=admin,dc=org -w ldapPw77", "ldapPw77"],
    "LDAP URL" => ["ldap://cn=admin,dc=org:ldapUrl77@ldap:389", "ldapUrl77"],
    "password with /" => ["pg://me:sl4/sh3d@db/blog", "sl4", "sh3d"],
    "password with @" => ["pg://me:4t@s1gn@db/blog", "4t@", "s1gn"],
    "password with quotes" => ["pg://me:qu0\"t3'd@db/blog", "qu0", "t3'd"],
    "user and password without scheme" => ["login me:n0sch3me@db.example", "n0sch3me"],
    "quoted password in a sentence" => ["wrong password 'quotedpw'", "quotedpw"],
    "password in a sentence" => ["the password is sentencepw", "sentencepw"],
    "apikey" => ["apikey commandpw was refused", "commandpw"],
    "second cookie" => ["Cookie: theme=dark; sid=c00kie2; b=c00kie3", "c00kie2", "c00kie3"],
    "what follows a blank" => ["password: blankone blanktwo", "blankone", "blanktwo"],
    "escaped quote" => ["{\"password\":\"esc1\\\"esc2\"}", "esc1", "esc2"],
    "below a telling name" => ["{\"auth\":{\"password\":\"nest3dPw\",\"x\":[\"nest3dX\"]}}", "nest3dPw", "nest3dX"],
    "below a telling name, as Ruby inspects it" => ["{:auth=>{:x=>\"insp3ct\"}, token: {y: \"insp4ct\"}}", "insp3ct",
                                                    "insp4ct"],
    "element" => ["<auth><x>elem3nt</x></auth><password>elem4nt</password>", "elem3nt", "elem4nt"],
    "full-width colon" => ["password\u{ff1a}wid3colon", "wid3colon"],
    "name and value" => ["{\"name\":\"DB_PASSWORD\",\"value\":\"pa1rvalue\"}", "pa1rvalue"],
    "openai" => %w[sk-proj-9sKd83hdKwQ1zPmX9sKd83hd 9sKd83hdKwQ1zPmX]
  }.freeze

  # Requests that fail: a target or field, and the secrets in it.
  TARGETS = {
    "/password/reset/pAth70ken" => "pAth70ken", "/x/da39a3ee5e6b4b0d3255bfef95601890afd80709" => "da39a3ee5e6b",
    "/?reset=r3setV" => "r3setV", "/?code=c0deV" => "c0deV", "/?state=st4teV" => "st4teV", "/?sig=s1gV" => "s1gV",
    "/?pin=739104" => "739104", "/?card=4929103847561020" => "4929103847561020",
    "/?whatever=wh4tEv3rV4lue" => "wh4tEv3rV4lue"
  }.freeze
  FIELDS = {
    "X-CSRF" => "csrfV4lue", "X-CSRF-Token" => "csrfT0ken",
    "X-Amz-Security" => "amzS3c", "X-Amz-Security-Token" => "amzT0k",
    "Authorization" => "Bearer authV4l", "Cookie" => "a=firstC00k; b=secondC00k",
    "X-Whatever" => "wh4tF"
  }.freeze
  FIELD_SECRETS = %w[csrfV4lue csrfT0ken amzS3c amzT0k authV4l firstC00k secondC00k wh4tF].freeze

  private

  # `shown`: texts, by where they are shown.
  def assert_hidden(shown, secret, what)
    shown.each do |where, text|
      text = CGI.unescapeHTML(text.dup.force_encoding("UTF-8").scrub)
      place = text[/.{0,60}#{Regexp.escape(secret)}.{0,40}/]
      assert_nil place, "#{secret} (#{what}) is in the #{where}"
    end
  end
end
