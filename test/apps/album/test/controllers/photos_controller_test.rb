# frozen_string_literal: true

require "test_helper"

class PhotosControllerTest < ActionDispatch::IntegrationTest
  test "should get index" do
    get photos_url
    assert_response :success
    assert_select "li a", "The harbour"
  end

  test "should create photo" do
    assert_difference("Photo.count") { post photos_url, params: { photo: { title: "Dawn" } } }
    assert_redirected_to photo_url(Photo.order(:id).last)
  end

  test "should refuse a photo without a title" do
    assert_no_difference("Photo.count") { post photos_url, params: { photo: { title: "" } } }
    assert_response :unprocessable_entity
  end

  # Rails runs the actions of ActionController::Live without a thread in tests: nothing is streamed.
  test "should get news" do
    get news_url
    assert_response :success
  end

  test "should show that it is up" do
    skip "Rails #{Rails.version} has no health check" unless defined?(Rails::HealthController)
    get rails_health_check_url
    assert_response :success
  end
end
