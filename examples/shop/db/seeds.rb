# frozen_string_literal: true

# Fills an empty shop, with the same each time. Rows are made first, and then written table by table.
class Seeds
  CATEGORIES = {
    "Locomotives" => %w[Steam Diesel Electric Railcars], "Wagons" => %w[Passenger Goods Tank Sleeping],
    "Track" => %w[Rails Points Crossings Turntables], "Scenery" => %w[Stations Bridges Trees Figures]
  }.freeze
  BRANDS = [%w[Alpina Switzerland], %w[Bellwether Britain], %w[Cordoba Spain], %w[Donau Austria], %w[Ember Germany],
            %w[Fjord Norway], %w[Gotthard Switzerland], %w[Harz Germany], %w[Isarwerk Germany], %w[Jura France]].freeze
  SCALES = ["H0, 1:87", "TT, 1:120", "N, 1:160"].freeze
  WAREHOUSES = { "Hamburg" => 1, "Lyon" => 2, "Porto" => 4 }.freeze
  WORDS = %w[articulated axle boiler brass bright buffer cast chassis coupling detailed digital driver flywheel freight
             gauge handrail heavy interior lamp latch light livery metal motor narrow night painted pickup platform
             printed rail rare red roof running short signal silent slow smoke sound spoked spring steel tender timber
             traction valve vintage weathered wheel window].freeze
  PEOPLE = %w[Ada Bruno Clara Dario Elif Frida Goran Hanna Ivo Jana Karl Lena Milan Nora Otto Pia].freeze
  PRODUCTS = 240
  CUSTOMERS = 80
  ORDERS = 300
  BEGAN = Time.utc(2026, 1, 1)

  def initialize
    @random = Random.new(1)
    @rows = Hash.new { |rows, model| rows[model] = [] }
  end

  def fill
    frame
    PRODUCTS.times { |index| product(index) }
    CUSTOMERS.times { |index| customer(index) }
    ORDERS.times { |index| order(index) }
    ApplicationRecord.transaction do
      @rows.each { |model, rows| model.insert_all!(rows) }
      Product.index_all_texts
    end
  end

  private

  # Remembers a row, and returns its id.
  def row(model, **values)
    rows = @rows[model]
    rows << { id: rows.length + 1, **values }
    rows.length
  end

  # Timestamps: this number of hours after the shop began.
  def at(hours) = { created_at: BEGAN + hours.hours, updated_at: BEGAN + hours.hours }
  def pick(list) = list[@random.rand(list.length)]
  def sentence = "#{Array.new(10) { pick(WORDS) }.join(' ').capitalize}."
  def paragraph = Array.new(4) { sentence }.join(" ")
  def text(paragraphs) = Array.new(paragraphs) { paragraph }.join("\n\n")

  def frame
    categories
    BRANDS.each { |name, country| row(Brand, name: name, country: country, history: text(2), **at(0)) }
    WORDS.each { |word| row(Tag, name: word) }
    WAREHOUSES.each { |town, days| row(Warehouse, town: town, days: days) }
    row(Coupon, code: "STEAM10", percent: 10, ends_on: Date.new(2099, 12, 31))
    row(Coupon, code: "LATE", percent: 50, ends_on: Date.new(2020, 1, 1))
    %w[delivery returns about].each { |slug| row(Page, slug: slug, title: slug.capitalize, body: text(4), **at(0)) }
  end

  def categories
    @shelves = []
    CATEGORIES.each_with_index do |(name, children), index|
      parent = row(Category, parent_id: nil, name: name, position: index, **at(0))
      children.each_with_index do |child, place|
        @shelves << [row(Category, parent_id: parent, name: child, position: place, **at(0)), child.singularize]
      end
    end
  end

  def product(index)
    shelf, kind = @shelves[index % @shelves.length]
    cents = 990 + (100 * @random.rand(300))
    reviews = 2 + @random.rand(10)
    id = row(Product, category_id: shelf, brand_id: 1 + @random.rand(BRANDS.length), price_cents: cents,
                      name: "#{kind} #{100 + index} #{pick(WORDS)}", description: text(2), reviews_count: reviews,
                      **at(index))
    variants(id, cents)
    texts(id, reviews)
    3.times do |place|
      row(Picture, product_id: id, caption: "View #{place + 1}", hue: @random.rand(360), position: place)
    end
    (1..WORDS.length).to_a.sample(4, random: @random).each { |tag| row(Tagging, product_id: id, tag_id: tag) }
  end

  def variants(product, cents)
    SCALES.each_with_index do |scale, place|
      variant = row(Variant, product_id: product, name: scale, sku: "#{product.to_s.rjust(5, '0')}-#{place + 1}",
                             price_cents: cents + (500 * place), **at(product))
      WAREHOUSES.length.times do |index|
        row(StockLevel, warehouse_id: index + 1, variant_id: variant, pieces: 400 + @random.rand(100))
      end
    end
  end

  def texts(product, reviews)
    reviews.times do |place|
      row(Review, product_id: product, author: pick(PEOPLE), stars: 1 + @random.rand(5), body: paragraph,
                  **at(product + place))
    end
    question = row(Question, product_id: product, author: pick(PEOPLE), body: sentence, **at(product + 1))
    row(Answer, question_id: question, author: "The shop", body: paragraph, **at(product + 2))
  end

  def customer(index)
    id = row(Customer, name: "#{pick(PEOPLE)} #{pick(WORDS).capitalize}", email: "customer#{index}@example.org",
                       **at(index))
    row(Address, customer_id: id, street: "Line #{index + 1}", town: pick(%w[Bern Graz Lille]), postcode: "1000",
                 **at(index))
  end

  def order(index)
    buyer = 1 + @random.rand(CUSTOMERS)
    id = row(Order, customer_id: buyer, address_id: buyer, discount_cents: 0,
                    token: "order-#{(index + 1).to_s.rjust(4, '0')}", **at(300 + index))
    amount = (1..(1 + @random.rand(4))).sum { order_item(id) }
    row(Payment, order_id: id, kind: "invoice", amount_cents: amount, **at(301 + index))
    row(Shipment, order_id: id, warehouse_id: 1 + @random.rand(WAREHOUSES.length),
                  arrives_on: Date.new(2026, 2, 1) + (index / 10), **at(301 + index))
  end

  # Returns what it costs.
  def order_item(order)
    variant = pick(@rows[Variant])
    pieces = 1 + @random.rand(3)
    row(OrderItem, order_id: order, variant_id: variant[:id], pieces: pieces, price_cents: variant[:price_cents])
    pieces * variant[:price_cents]
  end
end

Seeds.new.fill
