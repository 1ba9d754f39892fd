package llmtest

import (
	"fmt"
	"net/http"
	"strings"
)

// Fault answers a request instead of the model; it says no if the model should answer.
type Fault func(w http.ResponseWriter, r *http.Request, asked Asked) bool

// Says answers with a status and a body, which is JSON or not; headers are pairs of name and value.
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

// RateLimited asks to come again after so many seconds.
func RateLimited(seconds int) Fault {
	return Says(http.StatusTooManyRequests, `{"error":{"message":"Rate limit reached for requests","type":"requests","code":"rate_limit_exceeded"}}`,
		"Retry-After", fmt.Sprint(seconds))
}

// Fails is an error of the server's own.
func Fails() Fault {
	return Says(http.StatusInternalServerError, `{"error":{"message":"The server had an error while processing your request","type":"server_error"}}`)
}

// Hangs answers nothing until it is released or the caller goes.
func Hangs(release <-chan struct{}) Fault {
	return func(_ http.ResponseWriter, r *http.Request, _ Asked) bool {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return false
	}
}

// Hangup breaks the connection off.
func Hangup() Fault {
	return func(http.ResponseWriter, *http.Request, Asked) bool { panic(http.ErrAbortHandler) }
}

// Garbage is no JSON.
func Garbage() Fault { return Says(http.StatusOK, "{]") }

// Malformed is JSON whose fields have other types.
func Malformed() Fault {
	return Says(http.StatusOK, `{"choices":[{"message":{"role":"assistant","content":{"text":12}}}]}`)
}

// NoChoices is an answer without one.
func NoChoices() Fault {
	return Says(http.StatusOK, `{"id":"x","object":"chat.completion","choices":[]}`)
}

// Page is what a proxy shows for an error.
func Page(status int) Fault {
	return Says(status, "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>", "Content-Type", "text/html")
}

// Completes answers well, with any message and reason to finish.
func Completes(message map[string]any, finish string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, asked Asked) bool {
		writeCompletion(w, message, finish, Tokens(asked.Text()), 10)
		return true
	}
}

// Writes answers well, with a text.
func Writes(text string) Fault {
	return Completes(map[string]any{"role": "assistant", "content": text}, "stop")
}

// Empty answers with no text.
func Empty() Fault { return Writes("") }

// Null answers with a content of null, and thoughts aside.
func Null() Fault {
	return Completes(map[string]any{"role": "assistant", "content": nil, "reasoning_content": "Let me think about it."}, "stop")
}

// ErrorText answers as if all were well, with an error for a text.
func ErrorText() Fault { return Writes("Error generating summary: connection reset by peer") }

// Refuses declines.
func Refuses() Fault {
	return Completes(map[string]any{"role": "assistant", "content": nil, "refusal": "I'm sorry, but I can't help with that."}, "stop")
}

// OutOfLength ends for its length before the first word.
func OutOfLength() Fault {
	return Completes(map[string]any{"role": "assistant", "content": ""}, "length")
}

// Echo answers with what it was asked.
func Echo() Fault {
	return func(w http.ResponseWriter, r *http.Request, asked Asked) bool {
		text := ""
		if n := len(asked.Messages); n > 0 && asked.Messages[n-1].Content != nil {
			text = *asked.Messages[n-1].Content
		}
		return Writes(text)(w, r, asked)
	}
}

// TooLong writes on and on.
func TooLong(chars int) Fault {
	const sentence = "And then something else happened that was of no importance to anybody at all. "
	return Writes(strings.Repeat(sentence, chars/len(sentence)+1))
}

// Overflows says that the request is too large, whatever it is.
func Overflows(by Wording, window, sent int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ Asked) bool {
		by.write(w, window, sent)
		return true
	}
}
