# A small application without Rails.
quiet
threads '0', '8'
bind 'tcp://localhost:0'
clean_thread_locals
rack_url_scheme 'https' if ENV['FORCE_SSL']
