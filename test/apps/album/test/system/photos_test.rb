# frozen_string_literal: true

require "application_system_test_case"

class PhotosTest < ApplicationSystemTestCase
  test "creating a photo, and downloading it" do
    file = Tempfile.create(["dawn", ".jpg"]).tap { |created| created.write("as bytes") && created.close }
    visit photos_url
    click_on "New photo"
    fill_in "Title", with: "Dawn"
    attach_file "Image", file.path
    click_on "Create Photo"
    assert_text "Photo was successfully created."
    assert_equal Digest::SHA256.hexdigest("as bytes"), find("#checksum").text
    assert_equal "as bytes", Net::HTTP.get(URI(fetched(find("#download")[:href])))
  end

  # The record is in the transaction of the test only.
  test "a comment comes without reloading the page" do
    visit photo_url(photos(:harbour))
    assert_text "How calm it is."
    assert_selector "#cable", exact_text: "connected"
    photos(:harbour).comments.create!(text: "Before the storm.")
    assert_text "Before the storm."
  end

  test "writing a comment" do
    visit photo_url(photos(:harbour))
    fill_in "Comment", with: "Before the storm."
    click_on "Create Comment"
    assert_text "Before the storm."
    assert_equal ["How calm it is.", "Before the storm."], photos(:harbour).comments.order(:id).pluck(:text)
  end

  private

  # Where Active Storage redirects to.
  def fetched(url)
    Net::HTTP.get_response(URI(url))["location"]
  end
end
