package recall

import "slices"

// TurnsOf splits messages into turns. A turn begins with a user's message that follows another sender's.
func TurnsOf(messages []Message) (turns [][]Message) {
	begin := 0
	for i := range messages {
		if i > 0 && beginsTurn(messages, i) {
			turns, begin = append(turns, messages[begin:i]), i
		}
	}
	if begin < len(messages) {
		turns = append(turns, messages[begin:])
	}
	return turns
}

// beginsTurn reports whether the message at an index begins a turn.
func beginsTurn(messages []Message, i int) bool {
	return messages[i].Role == User && (i == 0 || messages[i-1].Role != User)
}

// withoutSummary returns the messages that are not summaries.
func withoutSummary(messages []Message) []Message {
	return slices.DeleteFunc(slices.Clone(messages), func(m Message) bool { return m.Role == Summary })
}

func positionsOf(messages []Message) []int {
	positions := make([]int, len(messages))
	for i, m := range messages {
		positions[i] = m.Position
	}
	return positions
}

func hasCall(m Message) bool {
	return slices.ContainsFunc(m.Content, func(p Part) bool { return p.Type == ToolCall })
}
