//! Asks an executable for its tasks. It may be any program at all, so time and memory are bounded.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use rustix::time::Timespec;

use super::entry::Answer;
use super::{ModuleError, ModuleTask};
use crate::environment::{Inherited, SERVE_ARGUMENT};
use crate::group::Group;
use crate::guardian::{self, Guardian, GuardianSpec, own_program, token};
use crate::init;
use crate::output::{Output, State, Stream};
use crate::program;
use crate::protocol::{CHILD_IN, CHILD_OUT, Down, Line, Lines, Up};
use crate::sys::{Place, Spawn, spawn};

/// Longest answer.
const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// A program that writes more than this to its answer's pipe without answering is no module.
const MAX_NOISE: usize = 16 * 1024 * 1024;
/// How long a program that has closed its pipe gets to end, so that we can say how.
const EXIT_LIMIT: Duration = Duration::from_secs(1);

pub(super) fn list(program: &Path, limit: Duration) -> Result<Vec<ModuleTask>, ModuleError> {
    let named = || program.to_owned();
    let start = |source| ModuleError::Start { program: named(), source };
    let mut asked = Asked::start(program).map_err(start)?;
    let answer = asked.wait(limit);
    let end = asked.end();
    match answer {
        Heard::Tasks(tasks) => Ok(tasks),
        Heard::Problem(problem) => Err(ModuleError::Answer { program: named(), problem }),
        Heard::End => Err(ModuleError::NoModule { program: named(), end }),
        Heard::Silence => Err(ModuleError::TimedOut { program: named(), limit }),
    }
}

/// What came of the question.
enum Heard {
    Tasks(Vec<ModuleTask>),
    Problem(String),
    /// It closed the pipe, or ended.
    End,
    /// The time is over.
    Silence,
}

/// A module that was asked.
struct Asked {
    group: Group,
    /// Ends it when this program is killed meanwhile. A program that cannot be its own has none.
    guardian: Option<Arc<Guardian>>,
    answers: OwnedFd,
    output: Output,
    _question: OwnedFd,
}

impl Asked {
    fn start(program: &Path) -> io::Result<Self> {
        let (answers, their_answers) = pipe_with(PipeFlags::CLOEXEC)?;
        let (errors, their_errors) = pipe_with(PipeFlags::CLOEXEC)?;
        let (their_question, question) = pipe_with(PipeFlags::CLOEXEC)?;
        ioctl_fionbio(&answers, true)?;
        ioctl_fionbio(&errors, true)?;
        // Fits into any pipe, so nobody has to read it for this to return.
        write(&question, Down::List.encode().as_bytes())?;
        let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let file: PathBuf = std::path::absolute(program)?;
        let folder = std::env::current_dir()?;
        let path = CString::new(file.as_os_str().as_bytes())?;
        let mark = rustix::fs::fstat(&their_answers)?.st_ino;
        let (argument, cwd) =
            (CString::new(SERVE_ARGUMENT)?, CString::new(folder.as_os_str().as_bytes())?);
        let spec = GuardianSpec { program: own_program(), token: token()? };
        let inherited = Inherited::for_question(mark, &spec.token);
        let guardian = init::is_called().then(|| Guardian::start(&spec, None)).transpose();
        let guardian = guardian.map_err(|error| io::Error::other(error.to_string()))?.map(Arc::new);
        let line = guardian::Line::default();
        line.lead_to(guardian.as_ref());
        let announced = line.announce(mark);
        let started = spawn(&Spawn {
            program: &path,
            argv: &[&path, &argument],
            env: &inherited.iter().map(CString::as_c_str).collect::<Vec<_>>(),
            cwd: &cwd,
            fds: &[
                (null.as_fd(), 0),
                (null.as_fd(), 1),
                (their_errors.as_fd(), 2),
                (their_question.as_fd(), CHILD_IN),
                (their_answers.as_fd(), CHILD_OUT),
            ],
            place: Place::OwnGroup,
        })
        .map_err(|errno| io::Error::other(program::spawn_problem(&file, &folder, errno)))
        .and_then(|leader| Ok(Group::of_new_child(leader)?));
        let group = match started {
            Ok(group) => group,
            Err(error) => {
                guardian.iter().for_each(|guardian| guardian.discard());
                return Err(error);
            }
        };
        announced.started(&group);
        let output = Output::of_errors(errors);
        Ok(Self { group, guardian, answers, output, _question: question })
    }

    /// Waits for the answer.
    fn wait(&mut self, limit: Duration) -> Heard {
        let deadline = Instant::now() + limit;
        let mut lines = Lines::new(MAX_ANSWER);
        let mut buffer = vec![0; 64 * 1024];
        let mut noise = 0;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Heard::Silence;
            }
            let has_ended = self.group.peek_exit().is_some();
            let mut fds = vec![
                PollFd::new(&self.answers, PollFlags::IN),
                PollFd::from_borrowed_fd(self.group.pidfd(), PollFlags::IN),
            ];
            if let Some(errors) = self.output.descriptor(Stream::Err) {
                fds.push(PollFd::from_borrowed_fd(errors, PollFlags::IN));
            }
            match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Heard::Problem(error.to_string()),
            }
            drop(fds);
            if self.output.read(Stream::Err, &mut buffer, None).0 == State::Ended {
                self.output.close(Stream::Err);
            }
            let mut heard = None;
            let mut on_line = |line: Line| {
                heard = heard.take().or_else(|| answer(line));
            };
            let closed = match read(&self.answers, &mut *buffer) {
                Ok(0) => true,
                Ok(length) => {
                    noise += length;
                    lines.feed(buffer.get(..length).unwrap_or_default(), &mut on_line);
                    false
                }
                // What it has written is read, and it can write no more.
                Err(Errno::AGAIN) => has_ended,
                Err(Errno::INTR) => false,
                Err(_) => true,
            };
            if let Some(heard) = heard {
                return heard;
            }
            if closed {
                self.wait_for_exit(left.min(EXIT_LIMIT));
                return Heard::End;
            }
            if noise > MAX_NOISE {
                return Heard::Problem(format!(
                    "it writes without end to descriptor {CHILD_OUT}, but never its tasks"
                ));
            }
        }
    }

    /// One that has closed its pipe is most likely ending.
    fn wait_for_exit(&self, limit: Duration) {
        let mut fds = [PollFd::from_borrowed_fd(self.group.pidfd(), PollFlags::IN)];
        let _ = poll(&mut fds, Timespec::try_from(limit).ok().as_ref());
    }

    /// Ends whatever is left of it, and says how it ended.
    fn end(self) -> String {
        let Self { mut group, guardian, answers, mut output, .. } = self;
        let by_itself = group.peek_exit();
        let _ = group.signal(Signal::KILL);
        let mut fds = [PollFd::from_borrowed_fd(group.pidfd(), PollFlags::IN)];
        while let Err(Errno::INTR) = poll(&mut fds, None) {}
        group.reap();
        // Whoever holds this pipe is taken for a child of a launch that was under way.
        drop(answers);
        if let Some(guardian) = guardian {
            guardian.relieve();
        }
        output.drain(&mut vec![0; 64 * 1024], None);
        let how = match by_itself {
            Some(exit) => exit.describe(),
            None => format!("closed descriptor {CHILD_OUT} without a word"),
        };
        match output.error_tail().trim() {
            "" => how,
            errors => format!("{how}; stderr ends: {errors}"),
        }
    }
}

fn answer(line: Line) -> Option<Heard> {
    match line {
        Line::Whole(line) => match Answer::parse(&line) {
            Ok(Some(tasks)) => Some(Heard::Tasks(tasks)),
            Err(problem) => Some(Heard::Problem(problem)),
            Ok(None) => match Up::parse(&line) {
                Ok(Up::Failure(failure)) => Some(Heard::Problem(failure.message.to_string())),
                Ok(_) | Err(_) => None,
            },
        },
        Line::TooLong(_) => {
            Some(Heard::Problem(format!("its list of tasks is longer than {MAX_ANSWER} bytes")))
        }
    }
}
