// New comments of a photo, and the news, without reloading the page.
document.addEventListener("DOMContentLoaded", () => {
  const comments = document.querySelector("#comments");
  if (comments) {
    ActionCable.createConsumer().subscriptions.create(
      { channel: "CommentsChannel", photo: comments.dataset.photo },
      {
        connected() { document.querySelector("#cable").textContent = "connected"; },
        received(comment) {
          const item = document.createElement("li");
          item.textContent = comment.text;
          comments.append(item);
        },
      }
    );
  }
  const news = document.querySelector("#news");
  if (news) {
    const events = new EventSource("/news/events");
    events.onmessage = (event) => {
      const item = document.createElement("li");
      item.textContent = event.data;
      news.append(item);
    };
    events.onerror = () => events.close(); // the end; a browser would connect again
  }
});
