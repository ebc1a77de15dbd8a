import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.YieldingWaitStrategy;
import com.lmax.disruptor.dsl.Disruptor;
import com.lmax.disruptor.dsl.ProducerType;
import com.lmax.disruptor.util.DaemonThreadFactory;
import java.util.Scanner;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CountDownLatch;

/**
 * Reads lines "queue producers events", sends that many numbers from each producer to one consumer, and prints the
 * time in nanoseconds and the sum of the received numbers.
 */
public final class Lmax {
    private static final int CAPACITY = 1024;

    static final class Event {
        long value;
    }

    interface Sender {
        void send(long value) throws InterruptedException;
    }

    public static void main(String[] arguments) throws Exception {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNext()) {
            String queue = lines.next();
            int producers = lines.nextInt();
            long events = lines.nextLong();
            long began = System.nanoTime();
            long sum = queue.equals("disruptor") ? disruptor(producers, events) : blockingQueue(producers, events);
            System.out.println((System.nanoTime() - began) + " " + sum);
        }
    }

    private static long disruptor(int producers, long events) throws Exception {
        ProducerType type = producers == 1 ? ProducerType.SINGLE : ProducerType.MULTI;
        Disruptor<Event> disruptor =
            new Disruptor<>(Event::new, CAPACITY, DaemonThreadFactory.INSTANCE, type, new YieldingWaitStrategy());
        long[] sum = {0};
        long[] left = {producers * events};
        CountDownLatch done = new CountDownLatch(1);
        disruptor.handleEventsWith((event, sequence, endOfBatch) -> {
            sum[0] += event.value;
            if (--left[0] == 0) {
                done.countDown();
            }
        });
        RingBuffer<Event> ring = disruptor.start();
        produce(producers, events, value -> {
            long sequence = ring.next();
            ring.get(sequence).value = value;
            ring.publish(sequence);
        });
        done.await();
        disruptor.shutdown();
        return sum[0];
    }

    private static long blockingQueue(int producers, long events) throws Exception {
        ArrayBlockingQueue<Long> queue = new ArrayBlockingQueue<>(CAPACITY);
        long[] sum = {0};
        Thread consumer = new Thread(() -> {
            try {
                for (long left = producers * events; left > 0; left--) {
                    sum[0] += queue.take();
                }
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        });
        consumer.start();
        produce(producers, events, queue::put);
        consumer.join();
        return sum[0];
    }

    /** Starts the producers and waits until they have sent all their numbers. */
    private static void produce(int producers, long events, Sender sender) throws InterruptedException {
        Thread[] threads = new Thread[producers];
        for (int i = 0; i < producers; i++) {
            threads[i] = new Thread(() -> {
                try {
                    for (long n = 0; n < events; n++) {
                        sender.send(n);
                    }
                } catch (InterruptedException interrupted) {
                    throw new IllegalStateException(interrupted);
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
