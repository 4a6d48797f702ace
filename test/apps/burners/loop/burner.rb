# frozen_string_literal: true

require_relative "../begins"

# It comes to no end.
def burn
  begins "loop"
  loop { "round".hash }
end
