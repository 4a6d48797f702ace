# frozen_string_literal: true

module Highball
  class PumaFile
    # An address with TLS, as `ssl_bind` and `bind "ssl://…"` give it: what Highball can keep of it, or why it cannot be
    # bound. A restriction that Highball does not have (client certificates, a choice of ciphers) makes it unusable.
    class TlsAddress
      # Highball has no TLS older than 1.2, and resumes sessions. The last two concern client certificates.
      NEEDLESS = %w[no_tlsv1 no_tlsv1_1 reuse backlog low_latency ca verification_flags].freeze
      FILES = %w[cert key].freeze
      NO_CHOICE = "remove it: Highball offers TLS 1.2 and 1.3 with forward secrecy, and no choice of ciphers"
      NO_TEXT = "write it into a file, and name that with `cert` or `key`"
      # Parameters that Highball cannot keep, and what to do.
      REMEDIES = {
        "ssl_cipher_filter" => NO_CHOICE, "ssl_cipher_list" => NO_CHOICE, "ssl_ciphersuites" => NO_CHOICE,
        "cipher_suites" => NO_CHOICE, "protocols" => NO_CHOICE, "cert_pem" => NO_TEXT, "key_pem" => NO_TEXT,
        "key_password_command" => "name a key that is not encrypted, and that only the server's user can read"
      }.freeze
      VERIFIES = "have a web server in front ask for client certificates (nginx: ssl_verify_client)"
      NO_FILES = "name them: ssl_bind '0.0.0.0', 443, cert: 'site.crt', key: 'site.key'"
      # What shows that an address was meant to have TLS.
      NAMES = [*FILES, *REMEDIES.keys, "verify_mode", "ca"].freeze

      # Parameters of a URL: {"cert" => "site.crt"}.
      def self.parameters(query)
        query.to_s.split("&").to_h do |pair|
          pair.split("=", 2).then { |name, value| [name, unescaped(value.to_s)] }
        end
      end

      def self.unescaped(text)
        text.tr("+", " ").b.gsub(/%(\h\h)/) { Regexp.last_match(1).hex.chr }.force_encoding(text.encoding)
      end
      private_class_method :unescaped

      attr_reader :address

      # address::    host and port
      # parameters:: as Puma names them
      # folder::     where relative paths begin
      def initialize(address, parameters, folder)
        @address = address
        @folder = folder
        @parameters = parameters.transform_keys(&:to_s).reject { |_, value| value.to_s.empty? }
      end

      # The files of the certificate and its key; nil: there are none.
      def files = FILES.map { |name| @parameters[name]&.to_s }.then { |files| files if files.any? }

      # Why it cannot be bound as it says, and what to do; nil: it can.
      def problem
        mode = @parameters["verify_mode"]
        return ["`verify_mode: #{mode}` cannot be kept", VERIFIES] unless [nil, "none"].include?(mode&.to_s)

        unknown = @parameters.keys.find { |name| !NEEDLESS.include?(name) && !known?(name) }
        return ["`#{unknown}` cannot be kept", REMEDIES.fetch(unknown, "remove it")] if unknown

        problem_of_files if files
      end

      private

      def known?(name) = FILES.include?(name) || name == "verify_mode"

      def problem_of_files
        FILES.zip(files) do |name, file|
          return ["it has no `#{name}`", NO_FILES] unless file

          why = why_unreadable(File.expand_path(file, @folder)) or next
          return ["#{file} (`#{name}`) #{why}", "correct the path, or let the server's user read the file"]
        end
        nil
      end

      def why_unreadable(path)
        return "does not exist" unless File.exist?(path)
        return "is not a file" unless File.file?(path)

        "cannot be read" unless File.readable?(path)
      end
    end
  end
end
