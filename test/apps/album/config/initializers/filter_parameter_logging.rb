# frozen_string_literal: true

# Be sure to restart your server when you modify this file.
Rails.application.config.filter_parameters += %i[passw email secret token _key crypt salt certificate otp ssn]
