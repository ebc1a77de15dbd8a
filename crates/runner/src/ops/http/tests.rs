//! Tests of `http-get` with well-behaved and misbehaving servers on the loopback interface.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

use super::Http;
use crate::file::model::{HttpSpec, Method};
use crate::file::parse::parse;
use crate::file::template::{Field, Fields, Template};
use crate::ops::one_stage::{run, run_all, run_within};
use crate::record::Record;
use crate::wire::wire;

/// A server whose response depends on the request's path, and which counts its connections.
struct Server {
    address: String,
    connections: Arc<AtomicUsize>,
}

impl Server {
    fn start() -> Self {
        Self::at("127.0.0.1:0").unwrap()
    }

    fn at(address: &str) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr().unwrap().to_string();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        let asked = Arc::new(Mutex::new(HashSet::new()));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                counter.fetch_add(1, Ordering::Relaxed);
                // An error is ignored, because some tests close the connection in the middle of a response.
                let asked = Arc::clone(&asked);
                std::thread::spawn(move || drop(serve(&stream.unwrap(), &asked)));
            }
        });
        Ok(Self { address, connections })
    }

    /// Passes the head of every request to `handle`, which writes the response.
    fn handling(handle: impl Fn(&str, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let handle = Arc::new(handle);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let handle = Arc::clone(&handle);
                std::thread::spawn(move || -> std::io::Result<()> {
                    let mut stream = stream?;
                    let mut lines = BufReader::new(stream.try_clone()?).lines();
                    loop {
                        let mut head = String::new();
                        loop {
                            match lines.next() {
                                Some(line) => match line? {
                                    line if line.is_empty() => break,
                                    line => head += &format!("{line}\n"),
                                },
                                None => return Ok(()),
                            }
                        }
                        handle(&head, &mut stream)?;
                    }
                });
            }
        });
        Self { address, connections: Arc::default() }
    }

    /// Answers every request with this text.
    fn replying(answer: String) -> Self {
        Self::handling(move |_, stream| stream.write_all(answer.as_bytes()))
    }

    /// As [`replying`](Self::replying), and stores the head of the last request in `heard`.
    fn listening(heard: Arc<Mutex<String>>, answer: String) -> Self {
        Self::handling(move |head, stream| {
            head.clone_into(&mut heard.lock().unwrap());
            stream.write_all(answer.as_bytes())
        })
    }

    /// A slow server, which counts the requests that it serves at once.
    fn counting(busy: Arc<Busy>) -> Self {
        Self::handling(move |_, stream| {
            busy.most.fetch_max(busy.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(20));
            busy.now.fetch_sub(1, Ordering::SeqCst);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        })
    }

    /// Announces a long body and sends one byte of it. Closes the connection after the server has answered `others`
    /// requests for the path `/small`.
    fn announcing(length: u64, served: Arc<AtomicUsize>, others: usize) -> Self {
        Self::handling(move |head, stream| {
            if head.starts_with("GET /small") {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
                served.fetch_add(1, Ordering::SeqCst);
                return Ok(());
            }
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nx")?;
            let start = Instant::now();
            while served.load(Ordering::SeqCst) < others && start.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(served.load(Ordering::SeqCst) >= others, "the others wait for the one that is announced");
            stream.shutdown(std::net::Shutdown::Both)
        })
    }

    fn record(&self, path: &str) -> Record {
        Record::line(format!("http://{}{path}", self.address).into_bytes())
    }
}

/// The number of requests that a server serves at once.
#[derive(Default)]
struct Busy {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Answers each request according to its path. `asked` contains the paths requested before.
fn serve(mut stream: &TcpStream, asked: &Mutex<HashSet<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    while let Some(request) = lines.next() {
        let request = request?;
        let mut accept = String::new();
        for header in lines.by_ref() {
            let header = header?;
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("x-unit: ") {
                value.clone_into(&mut accept);
            }
        }
        let path = request.split(' ').nth(1).unwrap_or_default();
        let asked_before = !asked.lock().unwrap().insert(path.to_owned());
        let whole = |status: &str, headers: &str, body: &str| {
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
        };
        let answer = match path {
            "/hello" => whole("200 OK", "", "hello"),
            "/header" => whole("200 OK", "", &accept),
            "/large" => whole("200 OK", "", &"x".repeat(1_000_000)),
            "/chunked" => {
                let chunk = format!("{:x}\r\n{}\r\n", 100_000, "y".repeat(100_000));
                format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n", chunk.repeat(5))
            }
            "/moved" => whole("302 Found", "Location: /hello\r\n", ""),
            "/moved-with-words" => whole("301 Moved Permanently", "Location: hello#part\r\n", "it is elsewhere"),
            "/nowhere" => whole("302 Found", "", ""),
            "/same" => whole("304 Not Modified", "", ""),
            "/file" => whole("302 Found", "Location: file:///etc/passwd\r\n", ""),
            "/many" => whole("300 Multiple Choices", "Location: /hello\r\n", ""),
            path if path.starts_with("/hops/") => {
                let left: u32 = path["/hops/".len()..].parse().unwrap();
                let to = if left == 0 { "/hello".to_owned() } else { format!("/hops/{}", left - 1) };
                whole("307 Temporary Redirect", &format!("Location: {to}\r\n"), "")
            }
            "/absurd" => whole("200 OK", &format!("X: {}\r\n", "x".repeat(1 << 20)), "hello"),
            "/never" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                loop {
                    stream.write_all(b"3e8\r\n")?;
                    stream.write_all(&[b'z'; 1000])?;
                    stream.write_all(b"\r\n")?;
                }
            }
            "/drip" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")?;
                loop {
                    stream.write_all(b"x")?;
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            "/loop" => whole("302 Found", "Location: /loop\r\n", ""),
            "/busy" => whole("503 Service Unavailable", "Retry-After: 7\r\n", "later"),
            "/soon" if asked_before => whole("200 OK", "", "now"),
            "/soon" => whole("503 Service Unavailable", "Retry-After: 1\r\n", "later"),
            "/endless" if asked_before => whole("200 OK", "", "now"),
            "/endless" => whole("429 Too Many Requests", "Retry-After: 99999999999999999999\r\n", "later"),
            "/short" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")?;
                return Ok(());
            }
            "/stall" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")?;
                std::thread::sleep(Duration::from_secs(600));
                return Ok(());
            }
            "/silent" => {
                std::thread::sleep(Duration::from_secs(600));
                return Ok(());
            }
            _ => whole("404 Not Found", "", "no such page"),
        };
        stream.write_all(answer.as_bytes())?;
    }
    Ok(())
}

fn get_with(max_bytes: Option<u64>, headers: &[(&str, &str)]) -> Http {
    let headers: Vec<(String, Template)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), Template::parse(value).unwrap())).collect();
    Http::new(&HttpSpec { max_bytes, headers, ..spec() }, false).unwrap()
}

fn spec() -> HttpSpec {
    HttpSpec {
        url: Template::parse("{line}").unwrap(),
        max_bytes: None,
        max_retry_after: Some(Duration::ZERO),
        max_redirects: None,
        downgrade: false,
        headers: Vec::new(),
        method: Method::Get,
        body: None,
        fields: Vec::new(),
    }
}

fn get() -> Http {
    get_with(None, &[])
}

#[test]
fn the_body_is_the_payload() {
    let server = Server::start();
    let body = |path| run(get(), server.record(path)).unwrap().payload;
    assert_eq!(body("/hello"), b"hello");
    assert_eq!(body("/moved"), b"hello");
    assert_eq!(body("/moved-with-words"), b"hello");
    assert_eq!(body("/large"), vec![b'x'; 1_000_000]);
    assert_eq!(body("/chunked"), vec![b'y'; 500_000]);
    let op = get_with(None, &[("X-Unit", "<{host}>")]);
    assert_eq!(run(op, server.record("/header")).unwrap().payload, format!("<{}>", server.address).into_bytes());
}

#[test]
fn connections_are_used_again() {
    let server = Server::start();
    let records = run_all(get(), (0..200).map(|_| server.record("/hello"))).unwrap();
    assert_eq!(records.len(), 200);
    let connections = server.connections.load(Ordering::Relaxed);
    assert!(connections <= 4, "200 requests by two workers made {connections} connections");
}

#[test]
fn errors_say_what_was_asked_and_what_happened() {
    let server = Server::start();
    for (path, expected) in [
        ("/nothing", "status 404 Not Found"),
        ("/busy", "status 503 Service Unavailable; the server asks to retry after 7"),
        ("/loop", "redirected to"),
        ("/nowhere", "status 302 Found"),
        ("/same", "status 304 Not Modified"),
        ("/many", "status 300 Multiple Choices"),
        (
            "/file",
            "redirected to `file:///etc/passwd`, which cannot be followed: only http:// and https:// are fetched",
        ),
        ("/absurd", "header"),
        ("/short", ""),
    ] {
        let error = run(get(), server.record(path)).unwrap_err();
        assert!(error.starts_with(&format!("GET http://{}{path}: ", server.address)), "{error}");
        assert!(error.contains(expected), "{error}");
    }
    // A socket that is bound but does not listen refuses connections, and no other program can use its port.
    let bound = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&bound, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let closed = SocketAddr::try_from(getsockname(&bound).unwrap()).unwrap();
    let error = run(get(), Record::line(format!("http://{closed}/").into_bytes())).unwrap_err();
    assert!(error.contains("refused"), "{error}");
}

#[test]
fn a_server_that_asks_for_a_pause_gets_it_up_to_the_limit() {
    let server = Server::start();
    let op = |limit| Http::new(&HttpSpec { max_retry_after: limit, ..spec() }, false).unwrap();
    let start = Instant::now();
    assert_eq!(run(op(None), server.record("/soon")).unwrap().payload, b"now");
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
    // Without the limit, the request would never end.
    assert_eq!(run(op(Some(Duration::from_millis(1))), server.record("/endless")).unwrap().payload, b"now");
}

#[test]
fn a_body_beyond_the_limit_is_not_taken() {
    let server = Server::start();
    for path in ["/large", "/chunked", "/never"] {
        let error = run(get_with(Some(400_000), &[]), server.record(path)).unwrap_err();
        assert!(error.contains("`max_bytes` is 400000"), "{error}");
    }
    assert!(run(get_with(Some(1_000_000), &[]), server.record("/large")).is_ok());
    assert!(run(get_with(Some(500_000), &[]), server.record("/chunked")).is_ok());
}

#[test]
fn the_time_limit_ends_a_request_wherever_it_is() {
    let server = Server::start();
    for path in ["/silent", "/stall", "/drip"] {
        let start = Instant::now();
        let error = run_within(get(), server.record(path), Duration::from_millis(200)).unwrap_err();
        assert!(error.contains("time limit"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(60), "{path}: {:?}", start.elapsed());
    }
}

#[test]
fn redirects_are_followed_up_to_the_limit_and_are_no_attempts() {
    let server = Server::start();
    let get = |most| Http::new(&HttpSpec { max_redirects: most, ..spec() }, false).unwrap();
    assert_eq!(run(get(None), server.record("/hops/9")).unwrap().payload, b"hello");
    let error = run(get(None), server.record("/hops/10")).unwrap_err();
    let last = format!(
        "redirected to http://{0}/hops/0: redirected to http://{0}/hello, but `max_redirects` is 10",
        server.address
    );
    assert_eq!(error, format!("GET http://{}/hops/10: {last}", server.address));
    assert_eq!(run(get(Some(301)), server.record("/hops/300")).unwrap().payload, b"hello");
    assert!(run(get(Some(0)), server.record("/moved")).unwrap_err().ends_with("`max_redirects` is 0"));
    // One retry is allowed, which a redirect must not use up.
    let soon = Server::replying(format!(
        "HTTP/1.1 302 Found\r\nLocation: http://{}/soon\r\nContent-Length: 0\r\n\r\n",
        server.address
    ));
    assert_eq!(run(get(None), soon.record("/")).unwrap().payload, b"now");
}

#[test]
fn a_fetched_unit_needs_its_own_host_again() {
    let elsewhere = Server::start();
    let server = Server::replying(format!(
        "HTTP/1.1 302 Found\r\nLocation: http://{}/hello\r\nContent-Length: 0\r\n\r\n",
        elsewhere.address
    ));
    let record = run(get(), server.record("/")).unwrap();
    assert_eq!(record.payload, b"hello");
    assert_eq!(record.field(&Field::Host).unwrap(), server.address.as_bytes());
}

#[test]
fn credentials_and_headers_go_to_the_first_server_only() {
    let heard = Arc::new(Mutex::new(String::new()));
    let stranger = Server::listening(Arc::clone(&heard), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned());
    let home = Arc::new(Mutex::new(String::new()));
    let answer = format!("HTTP/1.1 302 Found\r\nLocation: http://{}/\r\nContent-Length: 0\r\n\r\n", stranger.address);
    let server = Server::listening(Arc::clone(&home), answer);
    let get = || get_with(None, &[("X-Secret", "hidden"), ("Cookie", "c=hidden")]);
    let record = Record::line(format!("http://user:p%40ss@{}/", server.address).into_bytes());
    assert_eq!(run(get(), record).unwrap().payload, b"ok");
    let (home, heard) = (home.lock().unwrap().to_ascii_lowercase(), heard.lock().unwrap().to_ascii_lowercase());
    // Base64 of `user:p@ss`, in lower case here.
    for header in ["x-secret: hidden", "cookie: c=hidden", "authorization: basic dxnlcjpwqhnz"] {
        assert!(home.contains(header), "{home}");
    }
    assert!(heard.contains("get / http/1.1"), "{heard}");
    assert!(!heard.contains("hidden") && !heard.contains("authorization"), "{heard}");
}

#[test]
fn a_message_shows_no_credentials() {
    let server = Server::start();
    let line = format!("http://user:hidden@{}/nothing?page=2&token=hidden", server.address);
    let error = run(get(), Record::line(line.into_bytes())).unwrap_err();
    assert_eq!(error, format!("GET http://***@{}/nothing?page=2&token=***: status 404 Not Found", server.address));
    for line in ["http://user:hi/dden@h o/", "http://user:hidden@h:99999/", "ftp://user:hidden@h/"] {
        let error = run(get(), Record::line(line.into())).unwrap_err();
        assert!(error.contains("***@h") && !error.contains("dden"), "{error}");
    }
}

#[test]
fn a_server_has_an_address_of_any_kind() {
    // On a machine without IPv6, there is nothing to test.
    let Ok(server) = Server::at("[::1]:0") else { return };
    assert_eq!(run(get(), server.record("/hello")).unwrap().payload, b"hello");
    let port = server.address.rsplit_once(':').unwrap().1;
    let record = Record::line(format!("http://[0:0::1]:0{port}/moved").into_bytes());
    assert_eq!(record.field(&Field::Host).unwrap(), server.address.as_bytes());
    assert_eq!(run(get(), record).unwrap().payload, b"hello");
}

/// Runs a flow file on lines. Returns the number of retired units, and the failure messages of the other units.
fn flow(text: &str, lines: Vec<String>) -> (u64, Vec<String>) {
    let file = parse("f.toml".as_ref(), text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let dead = Arc::new(Mutex::new(Vec::new()));
    let letters = Arc::clone(&dead);
    let wired = wire(&file, move |letter| letters.lock().unwrap().push(letter.message), None, Arc::default()).unwrap();
    let report = wired.flow.run(lines.into_iter().map(|line| Record::line(line.into_bytes())));
    let dead = std::mem::take(&mut *dead.lock().unwrap());
    (report.retired, dead)
}

#[test]
fn a_redirect_waits_for_the_slot_of_the_host_it_leads_to() {
    let busy = Arc::new(Busy::default());
    let target = Server::counting(Arc::clone(&busy));
    let redirects: Vec<Server> = (0..20)
        .map(|page| {
            let to = format!("http://{}/{page}", target.address);
            Server::replying(format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"))
        })
        .collect();
    let text = r#"
        inflight = 64
        [resources]
        net = 16
        "host:*" = 2
        [source]
        lines = "-"
        [[stage]]
        name = "get"
        op = "http-get"
        url = "{line}"
        needs = { net = 1, "host:{host}" = { amount = 1, until = "hash" } }
        [[stage]]
        name = "hash"
        op = "blake3"
    "#;
    let (retired, dead) = flow(text, redirects.iter().map(|server| format!("http://{}/", server.address)).collect());
    assert_eq!((retired, dead), (20, Vec::new()));
    assert_eq!(busy.most.load(Ordering::SeqCst), 2, "requests at once to the host that all redirects lead to");
}

#[test]
fn a_server_that_announces_much_and_sends_little_delays_no_unit() {
    let text = r#"
        inflight = 4
        memory = "4MiB"
        [source]
        lines = "-"
        [[stage]]
        name = "get"
        op = "http-get"
        url = "{line}"
        timeout = "600s"
        [[stage]]
        name = "hash"
        op = "blake3"
    "#;
    let served = Arc::new(AtomicUsize::new(0));
    let server = Server::announcing(200_000_000, Arc::clone(&served), 20);
    let mut lines = vec![format!("http://{}/", server.address)];
    lines.extend((0..20).map(|_| format!("http://{}/small", server.address)));
    let (retired, dead) = flow(text, lines);
    assert_eq!(retired, 20, "{dead:?}");
    assert_eq!(served.load(Ordering::SeqCst), 20);
    assert_eq!(dead.len(), 1, "what was announced never came");
}

#[test]
fn bodies_larger_than_the_memory_there_is_come_one_after_the_other() {
    let server = Server::start();
    let text = r#"
        memory = "200KiB"
        [source]
        lines = "-"
        [[stage]]
        name = "get"
        op = "http-get"
        url = "{line}"
        [[stage]]
        name = "check"
        op = "check"
        field = "size"
        equals = "1000000"
    "#;
    let (retired, dead) = flow(text, (0..10).map(|_| format!("http://{}/large", server.address)).collect());
    assert_eq!((retired, dead), (10, Vec::new()));
}

#[test]
fn a_text_that_is_not_a_url_is_refused() {
    for line in [&b"example.com"[..], b"ftp://h/", b"", b"http://\xFF/", b"http://", b"http://a b/"] {
        let error = run(get(), Record::line(line.to_vec())).unwrap_err();
        assert!(!error.contains("panicked"), "{error}");
    }
    let headers = vec![("no header".to_owned(), Template::parse("x").unwrap())];
    assert!(Http::new(&HttpSpec { headers, ..spec() }, false).is_err());
    let bad_value = get_with(None, &[("X-Unit", "{line}")]);
    assert!(run(bad_value, Record::line(b"http://127.0.0.1:9/\n".to_vec())).is_err());
}

/// A server that repeats each request in its response: the method, the target and the body.
fn repeating() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || repeat(&stream?));
        }
        std::io::Result::Ok(())
    });
    Server { address, connections: Arc::default() }
}

fn repeat(mut stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let (status, location) = match target {
        "/repeat" => ("307 Temporary Redirect", "Location: /end\r\n"),
        "/see" => ("303 See Other", "Location: /end\r\n"),
        "/unclear" => ("302 Found", "Location: /end\r\n"),
        "/busy" => ("503 Service Unavailable", ""),
        _ => ("200 OK", ""),
    };
    let told = format!("{method} {target} {}", String::from_utf8_lossy(&body));
    let length = told.len();
    let told = if method == "HEAD" { "" } else { &told };
    let answer = format!(
        "HTTP/1.1 {status}\r\n{location}X-Kind: {method}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{told}"
    );
    stream.write_all(answer.as_bytes())
}

#[test]
fn a_request_has_the_body_that_it_is_given() {
    let server = repeating();
    let op = |method, body: Option<&str>| {
        let body = body.map(|body| Template::parse(body).unwrap());
        Http::new(&HttpSpec { method, body, fields: vec![("kind".into(), "x-kind".into())], ..spec() }, false).unwrap()
    };
    let record = |path: &str| {
        let mut record = server.record(path);
        record.payload = b"payload".to_vec().into();
        record
    };
    let told = |op: Http, path: &str| {
        let mut record = run(op, record(path)).unwrap();
        let kind = record.field(&Field::Set("kind".into())).unwrap().into_owned();
        (
            String::from_utf8(std::mem::take(&mut record.payload).bytes().clone()).unwrap(),
            String::from_utf8(kind).unwrap(),
        )
    };
    assert_eq!(told(op(Method::Post, None), "/x"), ("POST /x payload".into(), "POST".into()));
    assert_eq!(told(op(Method::Put, Some("<{name}>")), "/x"), ("PUT /x <x>".into(), "PUT".into()));
    assert_eq!(told(op(Method::Patch, None), "/x"), ("PATCH /x payload".into(), "PATCH".into()));
    assert_eq!(told(op(Method::Delete, None), "/x"), ("DELETE /x ".into(), "DELETE".into()), "it has no body");
    assert_eq!(told(op(Method::Delete, None), "/see").0, "GET /end ");
    assert_eq!(told(op(Method::Head, None), "/x"), ("payload".into(), "HEAD".into()), "the payload stays");
    assert_eq!(told(op(Method::Post, None), "/repeat").0, "POST /end payload");
    assert_eq!(told(op(Method::Post, None), "/see").0, "GET /end ");
    let refused = run(op(Method::Post, None), record("/unclear")).unwrap_err();
    assert!(refused.starts_with("POST ") && refused.contains("is to be repeated there: use that URL"), "{refused}");
    let busy = run(op(Method::Head, None), record("/busy")).unwrap_err();
    assert!(busy.starts_with("HEAD ") && busy.contains("status 503"), "{busy}");
}

#[test]
fn only_a_post_or_a_patch_does_harm_when_it_runs_again() {
    use crate::ops::Op as _;
    for method in Method::ALL {
        let op = Http::new(&HttpSpec { method, ..spec() }, false).unwrap();
        assert_eq!(op.idempotent(), !matches!(method, Method::Post | Method::Patch), "{method:?}");
    }
}

/// Sends a body of several megabytes to a server that reads only the head, sends `answer` and closes the connection.
/// Returns the failures of a unit on a thread and of a unit on a fiber.
fn sent_to_a_server_that_hangs_up(answer: &'static str) -> [String; 2] {
    let server = Server::handling(move |_, stream| {
        stream.write_all(answer.as_bytes())?;
        Err(std::io::Error::other("the rest stays unread"))
    });
    ["", "fibers = 2"].map(|on| {
        let text = format!(
            "[source]\nlines = \"-\"\n[[stage]]\nname = \"make\"\nop = \"exec\"\nexec = [\"head\", \"-c\", \"8000000\", \"/dev/zero\"]\n\
             [[stage]]\nname = \"send\"\nop = \"http\"\nmethod = \"POST\"\nurl = \"{{line}}\"\n{on}\n"
        );
        let (_, dead) = flow(&text, vec![format!("http://{}/", server.address)]);
        dead.join(" ")
    })
}

#[test]
fn an_answer_that_comes_before_the_body_was_read_is_the_answer() {
    let refused = "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    for failure in sent_to_a_server_that_hangs_up(refused) {
        assert!(failure.contains("status 413"), "{failure}");
    }
    for failure in sent_to_a_server_that_hangs_up("") {
        assert!(failure.contains("POST ") && failure.contains("os error"), "{failure}");
    }
}
