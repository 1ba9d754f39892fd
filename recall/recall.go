// Package recall keeps the log of agents' conversations, which is never rewritten, and searches it. It owns
// conversations, messages, tool calls, the tool results too long for the log, and the messages' vectors. It knows an
// agent only by its id.
package recall
