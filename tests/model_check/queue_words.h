// base/mpmc_queue.h as single steps, for models: the words of a queue, and pushing and popping cut
// up where another thread may come between. See that header for what the words mean.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::model_check {

/// Ways to get it wrong, to see that they are found.
enum class QueueFlaw {
  none,
  claim_without_exchange,  ///< the position is read, then written: two may take the same
  publish_before_writing,  ///< the producer raises the number, then writes the item
  free_before_reading,     ///< the consumer raises the number, then reads the item
};

/// What an operation has come to.
enum class Progress : uint8_t { under_way, done, refused };

template <size_t kCapacity>
struct QueueWords {
  uint8_t tail = 0;
  uint8_t head = 0;
  uint8_t number[kCapacity] = {};
  uint8_t item[kCapacity] = {};

  QueueWords() {
    for (size_t i = 0; i < kCapacity; ++i) number[i] = static_cast<uint8_t>(i);
  }
  /// What a look would show: whether a push or a pop begun now would get past it.
  bool looks_full() const { return ahead(number[tail % kCapacity], tail) < 0; }
  bool looks_empty() const { return ahead(number[head % kCapacity], head + 1) < 0; }

  static int ahead(uint8_t number, int expected) {
    return static_cast<int8_t>(static_cast<uint8_t>(number - expected));
  }
};

/// The registers of a thread that is pushing or popping.
struct QueueHand {
  enum At : uint8_t { load_position, load_number, claim, first_access, second_access };
  uint8_t at = load_position;
  uint8_t position = 0;
  uint8_t item = 0;  ///< to push, or popped
};

/// The steps common to both: up to the claim of a position at this end.
template <size_t kCapacity>
Progress claim_step(QueueWords<kCapacity>& queue, uint8_t& end, int turn, QueueHand& hand,
                    QueueFlaw flaw) {
  switch (hand.at) {
    case QueueHand::load_position:
      hand.position = end;
      hand.at = QueueHand::load_number;
      return Progress::under_way;
    case QueueHand::load_number: {
      const int ahead = queue.ahead(queue.number[hand.position % kCapacity], hand.position + turn);
      hand.at = ahead == 0 ? QueueHand::claim : QueueHand::load_position;
      return ahead < 0 ? Progress::refused : Progress::under_way;
    }
    default:  // claim
      if (end == hand.position || flaw == QueueFlaw::claim_without_exchange) {
        end = static_cast<uint8_t>(hand.position + 1);
        hand.at = QueueHand::first_access;
      } else {
        hand.position = end;
        hand.at = QueueHand::load_number;
      }
      return Progress::under_way;
  }
}

/// The two accesses to a claimed cell, in the right order or swapped.
template <typename Item, typename Number>
Progress access_step(QueueHand& hand, bool swapped, const Item& item, const Number& number) {
  const bool is_first = hand.at == QueueHand::first_access;
  if (is_first != swapped)
    item();
  else
    number();
  hand.at = is_first ? QueueHand::second_access : QueueHand::load_position;
  return is_first ? Progress::under_way : Progress::done;
}

template <size_t kCapacity>
Progress push_step(QueueWords<kCapacity>& queue, QueueHand& hand, QueueFlaw flaw) {
  if (hand.at < QueueHand::first_access) return claim_step(queue, queue.tail, 0, hand, flaw);
  const size_t cell = hand.position % kCapacity;
  return access_step(
      hand, flaw == QueueFlaw::publish_before_writing, [&] { queue.item[cell] = hand.item; },
      [&] { queue.number[cell] = static_cast<uint8_t>(hand.position + 1); });
}

template <size_t kCapacity>
Progress pop_step(QueueWords<kCapacity>& queue, QueueHand& hand, QueueFlaw flaw) {
  if (hand.at < QueueHand::first_access) return claim_step(queue, queue.head, 1, hand, flaw);
  const size_t cell = hand.position % kCapacity;
  return access_step(
      hand, flaw == QueueFlaw::free_before_reading, [&] { hand.item = queue.item[cell]; },
      [&] { queue.number[cell] = static_cast<uint8_t>(hand.position + kCapacity); });
}

}  // namespace sluice::model_check
