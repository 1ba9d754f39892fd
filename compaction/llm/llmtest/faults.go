package llmtest

import (
	"fmt"
	"net/http"
	"strings"
)

// Fault may answer a request instead of the model. It returns false if it did not.
type Fault func(w http.ResponseWriter, r *http.Request, asked Asked) bool

// Says answers with a status and a body, which may be JSON. headers are pairs of name and value.
func Says(status int, body string, headers ...string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ Asked) bool {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
		return true
	}
}

// RateLimited refuses a request, with a Retry-After in seconds.
func RateLimited(seconds int) Fault {
	return Says(http.StatusTooManyRequests, `{"error":{"message":"Rate limit reached for `+
		`requests","type":"requests","code":"rate_limit_exceeded"}}`,
		"Retry-After", fmt.Sprint(seconds))
}

// Fails answers with status 500.
func Fails() Fault {
	return Says(http.StatusInternalServerError, `{"error":{"message":"The server had an error while processing your `+
		`request","type":"server_error"}}`)
}

// Hangs does not answer until it is released or the client disconnects.
func Hangs(release <-chan struct{}) Fault {
	return func(_ http.ResponseWriter, r *http.Request, _ Asked) bool {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return false
	}
}

// Hangup breaks off the connection.
func Hangup() Fault {
	return func(http.ResponseWriter, *http.Request, Asked) bool { panic(http.ErrAbortHandler) }
}

// Garbage answers with a text that is not JSON.
func Garbage() Fault { return Says(http.StatusOK, "{]") }

// Malformed answers with JSON that has fields of wrong types.
func Malformed() Fault {
	return Says(http.StatusOK, `{"choices":[{"message":{"role":"assistant","content":{"text":12}}}]}`)
}

// NoChoices answers without a choice.
func NoChoices() Fault {
	return Says(http.StatusOK, `{"id":"x","object":"chat.completion","choices":[]}`)
}

// Page answers with a proxy's error page.
func Page(status int) Fault {
	return Says(status, "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>",
		"Content-Type", "text/html")
}

// Completes answers with a message and a finish reason.
func Completes(message map[string]any, finish string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, asked Asked) bool {
		writeCompletion(w, message, finish, Tokens(asked.Text()), 10)
		return true
	}
}

// Writes answers with a text.
func Writes(text string) Fault {
	return Completes(map[string]any{"role": "assistant", "content": text}, "stop")
}

// Empty answers with an empty text.
func Empty() Fault { return Writes("") }

// Null answers with reasoning and a content of null.
func Null() Fault {
	return Completes(map[string]any{"role": "assistant", "content": nil, "reasoning_content": "Let me think about it."},
		"stop")
}

// ErrorText answers with status 200 and the text of an error.
func ErrorText() Fault { return Writes("Error generating summary: connection reset by peer") }

// Refuses answers with a refusal.
func Refuses() Fault {
	return Completes(map[string]any{"role": "assistant", "content": nil,
		"refusal": "I'm sorry, but I can't help with that."}, "stop")
}

// OutOfLength answers with an empty text that reached the length limit.
func OutOfLength() Fault {
	return Completes(map[string]any{"role": "assistant", "content": ""}, "length")
}

// Echo answers with the last message of the request.
func Echo() Fault {
	return func(w http.ResponseWriter, r *http.Request, asked Asked) bool {
		text := ""
		if n := len(asked.Messages); n > 0 && asked.Messages[n-1].Content != nil {
			text = *asked.Messages[n-1].Content
		}
		return Writes(text)(w, r, asked)
	}
}

// TooLong answers with at least chars characters.
func TooLong(chars int) Fault {
	const sentence = "And then something else happened that was of no importance to anybody at all. "
	return Writes(strings.Repeat(sentence, chars/len(sentence)+1))
}

// Overflows answers that the request is too large, in a provider's words.
func Overflows(by Wording, window, sent int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ Asked) bool {
		by.write(w, window, sent)
		return true
	}
}
