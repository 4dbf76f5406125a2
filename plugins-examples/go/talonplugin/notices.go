package talonplugin

import (
	"sync"

	"talonplugin/noticespb"
)

// Notices that wait for the host; what comes while they are full is dropped. Lines of output that are dropped are counted, of as
// many calls.
const maxNotices = 64

// noticeQueue is what waits for one host that listens.
type noticeQueue struct {
	// changed has one element after something came.
	changed chan struct{}

	mutex   sync.Mutex
	notices []*noticespb.Notice
	// Lines that were left out since the last notice of their call.
	leftOut map[string]uint64
}

func newNoticeQueue() *noticeQueue {
	return &noticeQueue{changed: make(chan struct{}, 1), leftOut: map[string]uint64{}}
}

// put drops the notice while the queue is full.
func (q *noticeQueue) put(notice *noticespb.Notice) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if len(q.notices) < maxNotices {
		q.add(notice)
	}
}

// putOutput counts the lines while the queue is full. The next notice of the call has the count.
func (q *noticeQueue) putOutput(callID string, lines []string) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	count, counted := q.leftOut[callID]
	if len(q.notices) < maxNotices {
		delete(q.leftOut, callID)
		q.add(outputNotice(callID, lines, count))
	} else if counted || len(q.leftOut) < maxNotices {
		q.leftOut[callID] = count + uint64(len(lines))
	}
}

func (q *noticeQueue) add(notice *noticespb.Notice) {
	q.notices = append(q.notices, notice)
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// take is the next notice, or nil while there is none.
func (q *noticeQueue) take() *noticespb.Notice {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if len(q.notices) > 0 {
		notice := q.notices[0]
		q.notices = q.notices[1:]
		return notice
	}
	// The call may put out nothing more, or have ended: its count waits for no further line.
	for callID, count := range q.leftOut {
		delete(q.leftOut, callID)
		return outputNotice(callID, nil, count)
	}
	return nil
}

func outputNotice(callID string, lines []string, leftOut uint64) *noticespb.Notice {
	news := &noticespb.CallOutput{CallId: callID, Lines: lines, LeftOutLines: leftOut}
	return &noticespb.Notice{Kind: &noticespb.Notice_Output{Output: news}}
}
